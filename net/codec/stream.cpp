#include "net/codec/stream.hpp"

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "base/json/strict_json.hpp"
#include "net/codec/chat.hpp"
#include "net/codec/completions.hpp"
#include "net/codec/generate.hpp"
#include "net/request_id.hpp"

namespace troupe::net::stream {
namespace {

namespace json = boost::json;

struct request_type {
  std::string_view name;
  generation_parser parse;
};
constexpr std::array<request_type, 3> request_types{
    {{"generate", parse_generate}, {"completion", parse_completion}, {"chat", parse_chat}}};

fault invalid(std::string id, std::string message, std::string place) {
  return {std::move(id), {error_kind::invalid, std::move(message), std::move(place)}};
}

std::string event(std::string_view type, std::string_view id, json::object more = {}) {
  json::object out{{"type", type}, {"id", nullptr}};
  if (!id.empty()) out["id"] = id;
  for (auto& [key, value] : more) out[key] = std::move(value);
  return json::serialize(out);
}

}  // namespace

message parse(std::string_view text, std::size_t max_depth) {
  auto parsed = parse_json(text, max_depth);
  if (!parsed) return fault{{}, parsed.error()};
  if (!parsed->is_object()) return invalid({}, "a message must be a JSON object", {});
  json::object body = std::move(parsed->get_object());

  object_reader in(body);
  const auto type = in.text("type");
  const auto id = in.text("id");
  if (in.failure()) return fault{id.value_or(""), *in.failure()};
  if (!type) return invalid(id.value_or(""), "is required", "type");
  if (*type == "ping") return ping{};
  if (!id || !is_request_id(*id)) return invalid({}, "must be 1 to 128 printable ASCII characters", "id");
  if (*type == "cancel") return cancel{*id};

  const auto found =
      std::find_if(request_types.begin(), request_types.end(), [&](const auto& t) { return t.name == *type; });
  if (found == request_types.end())
    return invalid(*id, "'" + type->substr(0, 40) + "' is none of generate, completion, chat, cancel, ping", "type");
  json::object request;
  for (auto& [key, value] : body)
    if (key != "type" && key != "id" && !value.is_null()) request.emplace(key, std::move(value));
  request.emplace("stream", true);
  return start{*id, found->parse, std::move(request)};
}

std::string started_event(std::string_view id, std::string_view request_id, const actors::generation_started& start) {
  return event("started", id,
               {{"request_id", request_id}, {"cache", start.cache}, {"cache_age", start.cache_age.count()}});
}

std::string chunk_event(std::string_view id, std::string_view chunk) {
  std::string text = event("chunk", id);
  text.pop_back();
  text += ",\"data\":";
  text += chunk;
  text += "}";
  return text;
}

std::string result_event(std::string_view id, const json::object& whole) {
  return event("result", id, {{"data", whole}});
}
std::string done_event(std::string_view id) { return event("done", id); }
std::string cancelled_event(std::string_view id) { return event("cancelled", id); }
std::string error_event(std::string_view id, const wire_error& failure) {
  json::object more = error_body(failure);
  more["status"] = failure.status;
  if (failure.retry_after) more["retry_after"] = failure.retry_after->count();
  return event("error", id, std::move(more));
}
std::string pong_event() { return json::serialize(json::object{{"type", "pong"}}); }

}  // namespace troupe::net::stream
