#pragma once

#include "base/result.hpp"
#include "config/settings.hpp"

/// The process's log: one line an event, to standard error or a file.
namespace troupe::app {

/// Makes spdlog's default logger write where and what `settings` say. Called once, before other threads start.
result<void> open_log(const config::log_settings& settings);

}  // namespace troupe::app
