#include "app/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace troupe::app {

result<void> open_log(const config::log_settings& settings) {
  try {
    auto logger =
        settings.file.empty() ? spdlog::stderr_color_mt("troupe") : spdlog::basic_logger_mt("troupe", settings.file);
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
    logger->set_level(spdlog::level::from_str(settings.level));
    logger->flush_on(settings.file.empty() ? spdlog::level::trace : spdlog::level::warn);
    spdlog::set_default_logger(std::move(logger));
    spdlog::flush_every(std::chrono::seconds(1));
  } catch (const spdlog::spdlog_ex& failure) {
    return error{error_kind::io, std::string(failure.what()) + "; choose another file with --log-file", "log.file"};
  }
  return {};
}

}  // namespace troupe::app
