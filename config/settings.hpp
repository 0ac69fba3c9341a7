#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

/// The typed configuration of `troupe serve`, with its defaults. Filled from, in rising order of precedence: these
/// defaults, a YAML file, TROUPE_* environment variables, command-line flags (config/load.hpp).
namespace troupe::config {

struct server_settings {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;
  std::uint32_t io_threads = 1;
  std::uint32_t max_connections = 4096;
  std::uint64_t max_body_bytes = 4 << 20;
  std::uint64_t max_answer_bytes = 64 << 20;  ///< Of an answer in one piece, and of one piece of a stream.
  std::uint32_t max_header_bytes = 16 << 10;
  std::uint32_t max_json_depth = 64;
  std::chrono::milliseconds header_timeout{10'000};  ///< From the first byte of a request to the end of its header.
  std::chrono::milliseconds body_timeout{30'000};
  std::chrono::milliseconds idle_timeout{75'000};   ///< Keep-alive connection without a request.
  std::chrono::milliseconds write_timeout{30'000};  ///< A client that takes no byte for this long is dropped.
  std::uint64_t stream_window_bytes = 256 << 10;    ///< Unread bytes per request before its sequences pause.
  std::chrono::milliseconds sse_ping{30'000};
  std::uint32_t max_n = 128;
  std::uint32_t max_stops = 16;
  std::uint32_t max_streams = 256;  ///< Requests in flight on one WebSocket.
};

struct model_settings {
  std::string path;
  std::string name;                ///< Served name; empty: the model's own.
  std::string precision = "auto";  ///< fp32, bf16, int8, int4, auto.
  std::uint32_t max_context = 0;   ///< 0: the model's own.
  std::string chat_template;       ///< File that replaces the model's template; empty: none.
};

struct engine_settings {
  std::uint32_t threads = 0;               ///< Compute threads; 0: one per core.
  std::uint32_t max_batch_size = 32;       ///< Sequences in one step.
  std::chrono::milliseconds max_wait{50};  ///< How long a first batch waits to fill; 0: not at all.
  std::uint32_t step_tokens = 256;         ///< Rows in one step, prefill and decode together.
  std::uint64_t kv_cache_bytes = 0;  ///< 0: a quarter of the machine's free memory, at most what the batch can use.
  bool preload_experts = true;       ///< Load experts in the background after start.
};

struct limits_settings {
  std::uint32_t max_queued_requests = 512;
  std::uint64_t max_queued_tokens = 1 << 20;
  std::chrono::milliseconds generation_deadline{300'000};
  std::chrono::milliseconds queue_deadline{5'000};
  std::uint32_t preparers = 2;       ///< Workers that template and tokenize.
  std::uint32_t prompt_memo = 1000;  ///< Tokenized prompts remembered.
};

struct cache_settings {
  bool enabled = true;
  std::uint64_t memory_bytes = 64 << 20;
  std::uint32_t memory_entries = 1000;
  std::chrono::milliseconds ttl{300'000};
};

struct supervision_settings {
  /// With work that has not moved for this long, a stage counts as stalled and /health is red.
  std::chrono::milliseconds stall_limit{30'000};
  std::chrono::milliseconds restart_backoff{100};
  std::chrono::milliseconds drain_limit{30'000};  ///< After SIGTERM.
};

struct log_settings {
  std::string level = "info";  ///< trace, debug, info, warn, error.
  std::string file;            ///< Empty: standard error.
};

struct settings {
  server_settings server;
  model_settings model;
  engine_settings engine;
  limits_settings limits;
  cache_settings cache;
  supervision_settings supervision;
  log_settings log;
};

}  // namespace troupe::config
