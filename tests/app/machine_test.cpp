#include "app/machine.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace troupe::app {
namespace {

namespace fs = std::filesystem;

class ControlGroup : public testing::Test {
 protected:
  ControlGroup() { fs::create_directory(folder_); }
  ~ControlGroup() override { fs::remove_all(folder_); }
  void write(const std::string& file, const std::string& text) const { std::ofstream(folder_ / file) << text; }

  fs::path folder_ = fs::temp_directory_path() / ("troupe-group-" + std::to_string(::getpid()));
};

TEST_F(ControlGroup, CountsCachedFilesAsFree) {
  write("memory.max", "1000\n");
  write("memory.current", "900\n");
  EXPECT_EQ(available_to_group(folder_), 100U);
  write("memory.stat", "anon 200\nfile 700\ninactive_file 300\nactive_file 350\n");
  EXPECT_EQ(available_to_group(folder_), 750U);
}

TEST_F(ControlGroup, MayHaveNoLimit) {
  EXPECT_EQ(available_to_group(folder_), std::nullopt);
  write("memory.current", "900\n");
  write("memory.max", "max\n");
  EXPECT_EQ(available_to_group(folder_), std::nullopt);
}

TEST_F(ControlGroup, MayBeFull) {
  write("memory.max", "1000\n");
  write("memory.current", "1100\n");
  EXPECT_EQ(available_to_group(folder_), 0U);
}

}  // namespace
}  // namespace troupe::app
