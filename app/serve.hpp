#pragma once

#include "config/settings.hpp"

namespace troupe::app {

/// `troupe serve`: opens the port, loads the model behind it and serves until SIGTERM, SIGINT or SIGHUP, which
/// let running answers end; a second SIGTERM or SIGINT ends the process at once. Returns the exit code: 0 after a
/// drain, 1 when it cannot serve.
int serve(config::settings settings);

}  // namespace troupe::app
