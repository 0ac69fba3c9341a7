#include "net/api.hpp"

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "net/codec/chat.hpp"
#include "net/codec/completions.hpp"
#include "net/codec/generate.hpp"
#include "net/codec/reports.hpp"
#include "net/codec/tokenize.hpp"

namespace troupe::net {
namespace {

namespace json = boost::json;
using exchange_ptr = std::shared_ptr<exchange>;

constexpr std::string_view version = TROUPE_VERSION;

http_response json_response(const json::object& body, unsigned status = 200) {
  return {.status = status, .body = json::serialize(body) + "\n"};
}

// ---------------------------------------------------------------------------------------------------------------------
// What every POST is asked before its fields are read.

struct accepted_post {
  model_facts model;
  call_terms terms;
  json::object body;
};

/// Nothing when it was refused; the client has its answer then.
std::optional<accepted_post> accept_post(const api& self, const exchange_ptr& to) {
  const auto refuse = [&](const wire_error& failure) {
    to->fail(failure);
    return std::nullopt;
  };
  auto facts = self.ready_model();
  if (const auto* failure = std::get_if<wire_error>(&facts)) return refuse(*failure);
  auto terms = self.terms_of(to->request(), to->id());
  if (const auto* failure = std::get_if<wire_error>(&terms)) return refuse(*failure);
  auto& model = std::get<model_facts>(facts);
  auto body = parse_body(to->request().body, {model, self.settings().server});
  if (!body) return refuse(to_wire(body.error()));
  return accepted_post{std::move(model), std::get<call_terms>(std::move(terms)), *std::move(body)};
}

// ---------------------------------------------------------------------------------------------------------------------
// Generation.

/// Sends a running call's answer as JSON or as server-sent events.
call_output http_output(const exchange_ptr& to, bool stream) {
  auto cache_headers = std::make_shared<header_list>();
  call_output out;
  out.started = [to, stream, cache_headers](const actors::generation_started& start) {
    cache_headers->emplace_back("X-Cache", start.cache);
    if (start.cache != "miss") cache_headers->emplace_back("Age", std::to_string(start.cache_age.count()));
    if (!stream) return;
    http_response head{.content_type = "text/event-stream; charset=utf-8", .headers = *cache_headers};
    head.headers.emplace_back("Cache-Control", "no-cache");
    head.headers.emplace_back("X-Accel-Buffering", "no");
    to->open_stream(std::move(head));
  };
  out.chunks = [to](const std::vector<std::string>& chunks, std::function<void()> written) {
    std::string events;
    for (const std::string& chunk : chunks) events += event_text(chunk);
    to->write(events, std::move(written));
  };
  out.whole = [to, cache_headers](const json::object& whole) {
    http_response response = json_response(whole);
    response.headers = *cache_headers;
    to->respond(std::move(response));
  };
  out.done = [to, stream] {
    if (!stream) return;
    to->write(event_text("[DONE]"));
    to->close_stream();
  };
  out.failed = [to](const wire_error& failure) { to->fail(failure); };
  return out;
}

template <generation_parser Parse>
void generate(const api& self, const exchange_ptr& to) {
  auto post = accept_post(self, to);
  if (!post) return;
  auto call = Parse(post->body, {post->model, self.settings().server},
                    {.id = to->id(), .created = unix_seconds(), .model = post->model.name});
  if (!call) return to->fail(to_wire(call.error()));

  const bool stream = call->stream;
  auto running = running_call::start(self.calls(), *std::move(call), post->terms, to->post(), http_output(to, stream));
  if (!to->complete()) to->set_cancel([running] { running->cancel(); });
}

// ---------------------------------------------------------------------------------------------------------------------
// Tokens.

actors::text_terms text_terms_of(const call_terms& terms, const exchange_ptr& to) {
  actors::text_terms out{terms.deadline, {}};
  to->set_cancel([cancel = out.cancel] { cancel.cancel(); });
  return out;
}

void tokenize(const api& self, const exchange_ptr& to) {
  auto post = accept_post(self, to);
  if (!post) return;
  auto call = parse_tokenize(post->body, {post->model, self.settings().server});
  if (!call) return to->fail(to_wire(call.error()));

  const auto answer_on_connection = [to, &self, strings = call->return_token_strs,
                                     most = post->model.max_context](result<std::vector<token_id>> ids) {
    to->post()([to, &self, strings, most, ids = std::move(ids)] {
      if (!ids) return to->fail(to_wire(ids.error()));
      std::vector<std::string> texts;
      if (strings) texts = self.calls().token_texts(*ids);
      to->respond(json_response(tokenize_answer(*ids, most, strings ? &texts : nullptr)));
    });
  };
  self.calls().tokenize(std::move(call->request), text_terms_of(post->terms, to), answer_on_connection);
}

void detokenize(const api& self, const exchange_ptr& to) {
  auto post = accept_post(self, to);
  if (!post) return;
  auto ids = parse_detokenize(post->body, {post->model, self.settings().server});
  if (!ids) return to->fail(to_wire(ids.error()));
  self.calls().detokenize(*std::move(ids), text_terms_of(post->terms, to), [to](result<std::string> text) {
    to->post()([to, text = std::move(text)] {
      if (!text) return to->fail(to_wire(text.error()));
      to->respond(json_response(detokenize_answer(*text)));
    });
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// The server about itself.

void models(const api& self, const exchange_ptr& to) {
  auto facts = self.ready_model();
  if (const auto* failure = std::get_if<wire_error>(&facts)) return to->fail(*failure);
  to->respond(json_response(models_json(std::get<model_facts>(facts), unix_seconds())));
}

void one_model(const api& self, const exchange_ptr& to) {
  auto facts = self.ready_model();
  if (const auto* failure = std::get_if<wire_error>(&facts)) return to->fail(*failure);
  const auto& model = std::get<model_facts>(facts);
  const std::string name = percent_decoded(to->request().path().substr(std::string_view("/v1/models/").size()));
  if (name != model.name && name != "default")
    return to->fail(
        to_wire(error{error_kind::not_found, "the model '" + name.substr(0, 100) + "' does not exist", "model"}));
  to->respond(json_response(model_json(model, unix_seconds())));
}

void health(const api& self, const exchange_ptr& to) {
  const auto report = self.calls().health();
  to->respond(json_response(health_json(report), is_alive(report) ? 200 : 503));
}

void ready(const api& self, const exchange_ptr& to) {
  const auto report = self.calls().health();
  const bool is_ready = report.state == actors::health_report::state_kind::ready && report.healthy;
  http_response response = json_response(health_json(report), is_ready ? 200 : 503);
  if (!is_ready) response.headers.emplace_back("Retry-After", "1");
  to->respond(std::move(response));
}

void metrics(const api& self, const exchange_ptr& to) {
  to->respond({.content_type = "text/plain; version=0.0.4; charset=utf-8",
               .body = prometheus::TextSerializer().Serialize(self.calls().metrics->Collect())});
}

void experts(const api& self, const exchange_ptr& to) {
  to->respond(json_response(experts_json(self.calls().experts())));
}

void version_of(const api&, const exchange_ptr& to) { to->respond(json_response({{"version", version}})); }

void index(const api& self, const exchange_ptr& to);

void upgrade_required(const api&, const exchange_ptr& to) {
  http_response response = error_response(
      wire_error{426, "upgrade_required",
                 "this path speaks WebSocket (RFC 6455, version 13) and got no handshake; see docs/api.md"});
  response.headers.emplace_back("Upgrade", "websocket");
  response.headers.emplace_back("Sec-WebSocket-Version", "13");
  to->respond(std::move(response));
}

// ---------------------------------------------------------------------------------------------------------------------
// Routes.

struct route {
  std::string_view method;
  std::string_view path;  ///< Ends in "{id}": any one name, which may hold slashes.
  void (*handle)(const api&, const exchange_ptr&);
  std::string_view about;
};

constexpr std::array<route, 15> routes{{
    {"POST", "/v1/chat/completions", generate<parse_chat>, "OpenAI's chat completions"},
    {"POST", "/v1/completions", generate<parse_completion>, "OpenAI's completions"},
    {"POST", "/generate", generate<parse_generate>, "the small API: a prompt in, text out"},
    {"GET", api::stream_path, upgrade_required, "WebSocket: many requests on one connection"},
    {"POST", "/tokenize", tokenize, "text or messages to token ids"},
    {"POST", "/detokenize", detokenize, "token ids to text"},
    {"GET", "/v1/models", models, "the served model"},
    {"GET", "/v1/models/{id}", one_model, "one model"},
    {"GET", "/v1/experts", experts, "how the experts are used"},
    {"GET", "/health", health, "is every stage moving"},
    {"GET", "/ready", ready, "will a request be served now"},
    {"GET", "/metrics", metrics, "for Prometheus"},
    {"GET", "/version", version_of, "the program's version"},
    {"GET", "/ping", health, "the same as /health"},
    {"GET", "/", index, "this page"},
}};

void index(const api& self, const exchange_ptr& to) {
  std::string page = "Troupe " + std::string(version) + " serves " + self.calls().served_name() + ".\n\n";
  for (const route& r : routes)
    page += std::string(r.method) + std::string(6 - r.method.size(), ' ') + std::string(r.path) +
            std::string(24 - r.path.size(), ' ') + std::string(r.about) + "\n";
  to->respond({.content_type = "text/plain; charset=utf-8", .body = std::move(page)});
}

bool matches(const route& r, std::string_view path) {
  constexpr std::string_view any = "{id}";
  if (!r.path.ends_with(any)) return r.path == path;
  const std::string_view prefix = r.path.substr(0, r.path.size() - any.size());
  return path.starts_with(prefix) && path.size() > prefix.size();
}

bool accepts(const route& r, std::string_view method) {
  return r.method == method || (r.method == "GET" && method == "HEAD");
}

void answer_options(const exchange_ptr& to, const std::string& allow) {
  http_response response{.status = 204};
  response.headers.emplace_back("Allow", allow);
  to->respond(std::move(response));
}

/// JSON in UTF-8 and nothing else; a missing type counts as JSON.
std::optional<wire_error> check_media_type(const http_request& request) {
  const std::string_view type = request.header("content-type");
  const std::string_view essence = type.substr(0, type.find(';'));
  const std::string_view trimmed = essence.substr(0, essence.find_last_not_of(' ') + 1);
  const std::string_view parameters = type.substr(std::min(type.size(), essence.size()));
  std::string compact;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(compact),
               [](char c) { return c != ' ' && c != '"'; });
  const bool is_json =
      trimmed.empty() || equal_ignoring_case(trimmed, "application/json") || trimmed.ends_with("+json");
  const bool is_utf8 = compact.empty() || !equal_ignoring_case(compact.substr(0, 9), ";charset=") ||
                       equal_ignoring_case(compact.substr(9), "utf-8");
  if (!is_json || !is_utf8)
    return wire_error{415, "unsupported_media_type",
                      "the body must be JSON in UTF-8: send Content-Type: application/json"};
  const std::string_view coding = request.header("content-encoding");
  if (!coding.empty() && !equal_ignoring_case(coding, "identity"))
    return wire_error{415, "unsupported_media_type", "the body must not be compressed"};
  return std::nullopt;
}

}  // namespace

api::api(config::settings settings, upstream calls) : settings_(std::move(settings)), calls_(std::move(calls)) {}

void api::handle(const std::shared_ptr<exchange>& to) const {
  const http_request& request = to->request();
  const std::string_view path = request.path();
  std::string allow;
  for (const route& r : routes) {
    if (!matches(r, path)) continue;
    to->route = r.path;
    allow += (allow.empty() ? "" : ", ") + std::string(r.method) + (r.method == "GET" ? ", HEAD" : "");
    if (!accepts(r, request.method)) continue;
    if (request.method == "POST")
      if (auto fault = check_media_type(request)) return to->fail(*fault);
    return r.handle(*this, to);
  }
  if (request.method == "OPTIONS" && (!allow.empty() || request.target == "*"))
    return answer_options(to, allow.empty() ? "GET, HEAD, POST, OPTIONS" : allow + ", OPTIONS");
  if (allow.empty())
    return to->fail(to_wire(error{error_kind::not_found,
                                  "there is nothing at " + std::string(path.substr(0, 200)) + "; GET / lists the paths",
                                  {}}));
  http_response response = error_response(
      wire_error{405, "method_not_allowed", request.method.substr(0, 20) + " is not allowed here; allowed: " + allow});
  response.headers.emplace_back("Allow", allow + ", OPTIONS");
  to->respond(std::move(response));
}

std::variant<model_facts, wire_error> api::ready_model() const {
  if (auto facts = calls_.facts()) return *std::move(facts);
  const auto report = calls_.health();
  if (report.state == actors::health_report::state_kind::failed)
    return to_wire(error{error_kind::unavailable, "the model could not be loaded; the server's log says why", {}});
  return to_wire(error{error_kind::unavailable, "the model is being loaded; try again soon", {}});
}

std::variant<call_terms, wire_error> api::terms_of(const http_request& request, const std::string& id) const {
  const auto now = std::chrono::steady_clock::now();
  call_terms terms;
  terms.external_id = id;
  terms.max_bytes = static_cast<std::int64_t>(settings_.server.max_answer_bytes);
  terms.window = std::make_shared<flow_window>(static_cast<std::int64_t>(settings_.server.stream_window_bytes));
  terms.deadline = now + settings_.limits.generation_deadline;
  if (const std::string_view asked = request.header("x-request-timeout-ms"); !asked.empty()) {
    std::int32_t ms = 0;
    const auto [end, fault] = std::from_chars(asked.data(), asked.data() + asked.size(), ms);
    if (fault != std::errc{} || end != asked.data() + asked.size() || ms <= 0)
      return wire_error{400, "invalid_request", "X-Request-Timeout-Ms: must be a whole number of milliseconds above 0",
                        "X-Request-Timeout-Ms"};
    terms.deadline = std::min(terms.deadline, now + std::chrono::milliseconds(ms));
  }
  terms.queue_deadline = std::min(terms.deadline, now + settings_.limits.queue_deadline);
  terms.store_in_cache = !request.has_directive("cache-control", "no-store");
  terms.use_cache = terms.store_in_cache && !request.has_directive("cache-control", "no-cache");
  return terms;
}

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace troupe::net
