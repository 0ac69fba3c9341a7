#include "app/serve_flags.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "config/options.hpp"

namespace troupe::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

serve_flags parse(const std::string& line) {
  CLI::App command;
  serve_flags flags;
  add_serve_flags(command, flags);
  command.parse(line);
  return flags;
}

TEST(ServeFlags, HandsValuesToTheLoaderByTheirPath) {
  EXPECT_THAT(
      parse("--port 80 --model=/m -t 3").values,
      testing::UnorderedElementsAre(Pair("server.port", "80"), Pair("model.path", "/m"), Pair("engine.threads", "3")));
  EXPECT_EQ(parse("--config a.yaml").config_file, "a.yaml");
  EXPECT_FALSE(parse("").config_file);
}

TEST(ServeFlags, TurnsSwitchesOnAndOff) {
  EXPECT_THAT(parse("--preload-experts").values, ElementsAre(Pair("engine.preload_experts", "true")));
  EXPECT_THAT(parse("--no-preload-experts").values, ElementsAre(Pair("engine.preload_experts", "false")));
}

TEST(ServeFlags, TakesTheLastOfRepeatedFlagsAndAliases) {
  EXPECT_THAT(parse("--max-num-seqs 3 --max-batch-size 4").values, ElementsAre(Pair("engine.max_batch_size", "4")));
}

TEST(ServeFlags, RefusesWhatItDoesNotKnow) { EXPECT_THROW(parse("--no-such-flag"), CLI::ParseError); }

TEST(ServeFlags, ShowsEveryOptionWithItsDefaultAndItsVariable) {
  CLI::App command;
  serve_flags flags;
  add_serve_flags(command, flags);
  const std::string help = command.help();
  for (const config::option& option : config::options()) {
    EXPECT_THAT(help, HasSubstr(option.main_flag()));
    EXPECT_THAT(help, HasSubstr(option.environment));
    if (!option.default_text.empty()) {
      EXPECT_THAT(help, HasSubstr("default " + option.default_text));
    }
  }
}

}  // namespace
}  // namespace troupe::app
