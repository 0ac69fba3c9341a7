#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "config/settings.hpp"
#include "net/codec/generation_fields.hpp"
#include "net/codec/wire_error.hpp"
#include "net/http/exchange.hpp"
#include "net/running_call.hpp"
#include "net/upstream.hpp"

namespace troupe::net {

/// The HTTP API as one table of routes: what each path answers, with no socket in sight. Stateless apart from its
/// configuration; any thread.
class api {
 public:
  api(config::settings settings, upstream calls);

  /// Answers, at once or later, or says why not. On the connection's thread.
  void handle(const std::shared_ptr<exchange>& to) const;

  /// The path of a WebSocket upgrade that `handle` must not see.
  static constexpr std::string_view stream_path = "/v1/stream";

  const config::settings& settings() const { return settings_; }
  const upstream& calls() const { return calls_; }

  /// The model's facts, or 503: loading, or failed to load.
  std::variant<model_facts, wire_error> ready_model() const;

  /// Deadlines and cache wishes of a request: the configured ones, or less where its headers say so.
  std::variant<call_terms, wire_error> terms_of(const http_request& request, const std::string& id) const;

 private:
  config::settings settings_;
  upstream calls_;
};

std::int64_t unix_seconds();

}  // namespace troupe::net
