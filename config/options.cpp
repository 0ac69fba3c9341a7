#include "config/options.hpp"

#include <algorithm>
#include <cctype>
#include <concepts>
#include <limits>
#include <numeric>

#include "config/parse_value.hpp"

namespace troupe::config {
namespace {

using std::chrono::milliseconds;

/// How one type of value is read, bounded and shown.
template <class Value>
struct value_kind {
  std::string type;
  std::string range;
  std::function<result<Value>(std::string_view)> parse;
  std::function<std::string(const Value&)> show;
};

error out_of_range(std::string_view text, const std::string& range) {
  return {error_kind::invalid, "'" + std::string(text) + "' is out of range: it must be " + range, {}};
}

/// Reads with `read`, then checks low <= value <= high and narrows.
template <class Value, class Raw>
std::function<result<Value>(std::string_view)> bounded(result<Raw> (*read)(std::string_view), Raw low, Raw high,
                                                       std::string range) {
  return [=](std::string_view text) -> result<Value> {
    auto raw = read(text);
    if (!raw) return raw.error();
    if (*raw < low || *raw > high) return out_of_range(text, range);
    return static_cast<Value>(*raw);
  };
}

template <std::unsigned_integral Value>
value_kind<Value> integer(std::uint64_t low, std::uint64_t high = std::numeric_limits<Value>::max()) {
  const std::string range = std::to_string(low) + " to " + std::to_string(high);
  return {"integer", range, bounded<Value>(parse_integer, low, high, range),
          [](const Value& value) { return std::to_string(value); }};
}

template <std::unsigned_integral Value>
value_kind<Value> size(std::uint64_t low, std::uint64_t high) {
  const std::string range = show_size(low) + " to " + show_size(high);
  return {"size", range, bounded<Value>(parse_size, low, high, range),
          [](const Value& value) { return show_size(value); }};
}

value_kind<milliseconds> duration(milliseconds low, milliseconds high) {
  const std::string range = show_duration(low) + " to " + show_duration(high);
  return {"duration", range, bounded<milliseconds>(parse_duration, low, high, range),
          [](const milliseconds& value) { return show_duration(value); }};
}

value_kind<bool> boolean() {
  return {"boolean", "true or false", parse_boolean,
          [](const bool& value) { return std::string(value ? "true" : "false"); }};
}

value_kind<std::string> text() {
  return {"text", "", [](std::string_view given) -> result<std::string> { return std::string(given); },
          [](const std::string& value) { return value; }};
}

value_kind<std::string> choice(std::vector<std::string> allowed) {
  const std::string range = std::accumulate(std::next(allowed.begin()), allowed.end(), allowed.front(),
                                            [](std::string all, const std::string& one) { return all + ", " + one; });
  return {"choice", range,
          [allowed, range](std::string_view given) -> result<std::string> {
            if (std::find(allowed.begin(), allowed.end(), given) != allowed.end()) return std::string(given);
            std::vector<std::string_view> names(allowed.begin(), allowed.end());
            const auto meant = closest(given, names);
            return error{error_kind::invalid,
                         "'" + std::string(given) + "' is none of " + range +
                             (meant.empty() ? "" : "; did you mean '" + std::string(meant) + "'?"),
                         {}};
          },
          [](const std::string& value) { return value; }};
}

std::string environment_name(std::string_view path) {
  std::string name = "TROUPE_";
  for (const unsigned char c : path) name += c == '.' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

template <class Section, class Value>
option make(std::string path, std::string flags, Section settings::*section, Value Section::*member,
            value_kind<Value> kind, std::string help) {
  std::string name = environment_name(path);
  return {.path = std::move(path),
          .flags = std::move(flags),
          .environment = std::move(name),
          .type = kind.type,
          .range = kind.range,
          .default_text = kind.show(settings{}.*section.*member),
          .help = std::move(help),
          .set = [section, member, parse = kind.parse](settings& out, std::string_view given) -> result<void> {
            auto value = parse(given);
            if (!value) return value.error();
            out.*section.*member = *std::move(value);
            return {};
          },
          .show = [section, member, show = kind.show](const settings& in) { return show(in.*section.*member); }};
}

std::vector<option> make_options() {
  using u16 = std::uint16_t;
  using u32 = std::uint32_t;
  using u64 = std::uint64_t;
  using namespace std::chrono_literals;
  constexpr u64 kib = 1 << 10, mib = 1 << 20, tib = u64{1} << 40;
  constexpr auto model = &settings::model;
  constexpr auto server = &settings::server;
  constexpr auto engine = &settings::engine;
  constexpr auto limits = &settings::limits;
  constexpr auto cache = &settings::cache;
  constexpr auto supervision = &settings::supervision;
  constexpr auto log = &settings::log;
  using m = model_settings;
  using s = server_settings;
  using e = engine_settings;
  using l = limits_settings;
  using c = cache_settings;
  using v = supervision_settings;

  return {
      make("model.path", "--model,-m", model, &m::path, text(),
           "Model to serve: a folder with config.json, or a .gguf file."),
      make("model.name", "--served-model-name", model, &m::name, text(),
           "Name of the model in the API; empty: the folder's or file's name."),
      make("model.precision", "--precision", model, &m::precision, choice({"auto", "fp32", "bf16", "int8", "int4"}),
           "Precision of weights in compute; auto: bf16 for 16- and 32-bit files, int8 or int4 for quantised ones."),
      make("model.max_context", "--max-model-len", model, &m::max_context, integer<u32>(0, 1 << 24),
           "Longest prompt plus answer in tokens; 0: the model's own."),
      make("model.chat_template", "--chat-template", model, &m::chat_template, text(),
           "File with a Jinja template that replaces the model's own."),

      make("server.host", "--host", server, &s::host, text(),
           "Address to listen on; 0.0.0.0 or :: for every interface."),
      make("server.port", "--port,-p", server, &s::port, integer<u16>(0), "Port to listen on; 0: any free one."),
      make("server.io_threads", "--io-threads", server, &s::io_threads, integer<u32>(1, 64),
           "Threads that read requests and write answers."),
      make("server.max_connections", "--max-connections", server, &s::max_connections, integer<u32>(1, 1 << 20),
           "Connections open at once; one more is answered 503 and closed."),
      make("server.max_body_bytes", "--max-body-size", server, &s::max_body_bytes, size<u64>(kib, 1024 * mib),
           "Largest request body, and largest WebSocket message."),
      make("server.max_answer_bytes", "--max-answer-size", server, &s::max_answer_bytes, size<u64>(kib, 1024 * mib),
           "Largest answer in one piece, and largest piece of a stream, as JSON; logprobs count most."),
      make("server.max_header_bytes", "--max-header-size", server, &s::max_header_bytes, size<u32>(kib, mib),
           "Largest request line and header together."),
      make("server.max_json_depth", "--max-json-depth", server, &s::max_json_depth, integer<u32>(4, 512),
           "Deepest nesting of a JSON body."),
      make("server.header_timeout", "--header-timeout", server, &s::header_timeout, duration(1ms, 1h),
           "From the first byte of a request to the end of its header."),
      make("server.body_timeout", "--body-timeout", server, &s::body_timeout, duration(1ms, 1h),
           "From the end of a header to the end of the body."),
      make("server.idle_timeout", "--idle-timeout", server, &s::idle_timeout, duration(1ms, 24h),
           "A connection without a request is closed after this time."),
      make("server.write_timeout", "--write-timeout", server, &s::write_timeout, duration(1ms, 1h),
           "A client that takes no byte of its answer for this long is dropped."),
      make("server.stream_window_bytes", "--stream-window", server, &s::stream_window_bytes, size<u64>(kib, 1024 * mib),
           "Unread bytes of a stream before its sequences pause."),
      make("server.sse_ping", "--sse-ping-interval", server, &s::sse_ping, duration(10ms, 1h),
           "A silent event stream gets a comment this often, so that proxies keep it open."),
      make("server.max_n", "--max-n", server, &s::max_n, integer<u32>(1, 4096), "Most choices of one request (n)."),
      make("server.max_stops", "--max-stops", server, &s::max_stops, integer<u32>(1, 1024),
           "Most stop strings of one request."),
      make("server.max_streams", "--max-streams", server, &s::max_streams, integer<u32>(1, 65536),
           "Most requests in flight on one WebSocket."),

      make("engine.threads", "--threads,-t", engine, &e::threads, integer<u32>(0, 1024),
           "Compute threads; 0: one per core."),
      make("engine.max_batch_size", "--max-num-seqs,--max-batch-size", engine, &e::max_batch_size,
           integer<u32>(1, 4096), "Most sequences in one step."),
      make("engine.max_wait", "--max-wait", engine, &e::max_wait, duration(0ms, 60s),
           "How long a first batch waits to fill; 0: not at all."),
      make("engine.step_tokens", "--max-num-batched-tokens", engine, &e::step_tokens, integer<u32>(1, 1 << 20),
           "Most tokens in one step, prefill and decode together."),
      make("engine.kv_cache_bytes", "--kv-cache-memory", engine, &e::kv_cache_bytes, size<u64>(0, 64 * tib),
           "Memory for keys and values; 0: a quarter of the free memory, at most what a full batch can use."),
      make("engine.preload_experts", "--preload-experts", engine, &e::preload_experts, boolean(),
           "Load experts in the background after the start instead of on first use only."),

      make("limits.max_queued_requests", "--max-queued-requests", limits, &l::max_queued_requests,
           integer<u32>(1, 1 << 20),
           "Answers that may be asked for at a time, n of a request counting n times; more are refused with 503."),
      make("limits.max_queued_tokens", "--max-queued-tokens", limits, &l::max_queued_tokens,
           integer<u64>(1, u64{1} << 40),
           "Tokens of all queued prompts and answers, estimated; more are refused with 503."),
      make("limits.generation_deadline", "--request-timeout", limits, &l::generation_deadline, duration(1ms, 24h),
           "Longest time for a whole answer; a request may ask for less."),
      make("limits.queue_deadline", "--queue-timeout", limits, &l::queue_deadline, duration(1ms, 24h),
           "Longest wait of a request before work on it begins."),
      make("limits.preparers", "--preparers", limits, &l::preparers, integer<u32>(1, 256),
           "Workers that apply the chat template and tokenize."),
      make("limits.prompt_memo", "--prompt-memo", limits, &l::prompt_memo, integer<u32>(0, 1 << 20),
           "Tokenized prompts that are remembered, of 64 MiB in all."),

      make("cache.enabled", "--result-cache", cache, &c::enabled, boolean(),
           "Answer a request that repeats an earlier one from memory."),
      make("cache.memory_bytes", "--result-cache-memory", cache, &c::memory_bytes, size<u64>(0, 64 * tib),
           "Memory for kept answers."),
      make("cache.memory_entries", "--result-cache-entries", cache, &c::memory_entries, integer<u32>(0, 1 << 24),
           "Most kept answers."),
      make("cache.ttl", "--result-cache-ttl", cache, &c::ttl, duration(0ms, 24h * 365),
           "How long an answer is kept; the date that a template writes may be this late."),

      make("supervision.stall_limit", "--stall-limit", supervision, &v::stall_limit, duration(10ms, 24h),
           "A stage with work that has not moved for this long makes /health answer 503."),
      make("supervision.restart_backoff", "--restart-backoff", supervision, &v::restart_backoff, duration(1ms, 1h),
           "First wait before a failed stage is restarted; it doubles."),
      make("supervision.drain_limit", "--drain-timeout", supervision, &v::drain_limit, duration(0ms, 24h),
           "After SIGTERM: how long running answers may go on."),

      make("log.level", "--log-level", log, &log_settings::level, choice({"trace", "debug", "info", "warn", "error"}),
           "Least serious messages that are logged."),
      make("log.file", "--log-file", log, &log_settings::file, text(), "File for the log; empty: standard error."),
  };
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const option> options() {
  static const std::vector<option> all = make_options();
  return all;
}

const option* find_option(std::string_view path) {
  const auto all = options();
  const auto found = std::find_if(all.begin(), all.end(), [&](const option& o) { return o.path == path; });
  return found == all.end() ? nullptr : &*found;
}

std::string_view closest(std::string_view word, std::span<const std::string_view> candidates) {
  word = word.substr(0, 64);
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace troupe::config
