#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "net/codec/answer.hpp"
#include "net/upstream.hpp"

/// A model of 1000 tokens and an answer made of events, for codecs and routes.
namespace troupe::net {

namespace json = boost::json;

inline model_facts small_model() {
  return {.name = "small", .max_context = 64, .vocabulary = 1000, .has_chat_template = true, .defaults = {}};
}

inline json::object object_of(std::string_view text) {
  return json::parse(json::string_view(text.data(), text.size())).as_object();
}

/// Parses `text` with one API's codec.
inline result<generation_call> call_of(generation_parser parse, std::string_view text,
                                       const model_facts& model = small_model(),
                                       const config::server_settings& limits = {}) {
  const codec_context context{model, limits};
  auto body = parse_body(text, context);
  if (!body) return body.error();
  return parse(*body, context, {.id = "1", .created = 7, .model = model.name});
}

/// "place | message" of a refused body, or "accepted".
inline std::string refusal(generation_parser parse, std::string_view text) {
  auto call = call_of(parse, text);
  return call ? "accepted" : call.error().place + " | " + call.error().message;
}

inline actors::token_detail token(token_id id, std::string text, std::optional<float> logprob = std::nullopt,
                                  std::vector<actors::token_detail::alternative> top = {}) {
  return {.id = id, .text = text, .bytes = text, .logprob = logprob, .top = std::move(top)};
}

inline actors::generation_started started(std::vector<token_id> prompt = {5, 6}, std::string prompt_text = {}) {
  actors::generation_started event;
  event.prompt_ids = std::move(prompt);
  event.prompt_text = std::move(prompt_text);
  return event;
}
inline actors::generation_delta delta(std::uint32_t choice, std::string text,
                                      std::vector<actors::token_detail> tokens = {}) {
  if (tokens.empty()) tokens = {token(1, text)};
  return {choice, std::move(text), std::move(tokens)};
}
inline actors::generation_finished finished(std::uint32_t choice,
                                            actors::finish_reason reason = actors::finish_reason::stop) {
  actors::generation_finished event;
  event.choice = choice;
  event.reason = reason;
  return event;
}
inline actors::generation_done done(std::uint32_t prompt, std::uint32_t completion, std::uint32_t cached = 0) {
  return {prompt, completion, cached};
}

using script = std::vector<std::pair<std::size_t, actors::generation_event>>;

/// The chunks of a streamed answer, parsed.
inline std::vector<json::object> streamed(answer& form, const script& events) {
  std::vector<std::string> chunks;
  for (const auto& [prompt, event] : events) form.stream(prompt, event, chunks);
  form.end_stream(chunks);
  std::vector<json::object> parsed;
  for (const std::string& chunk : chunks) parsed.push_back(object_of(chunk));
  return parsed;
}

inline json::object whole(answer& form, const script& events) {
  for (const auto& [prompt, event] : events) form.collect(prompt, event);
  return form.whole();
}

/// A field by path: "/choices/0/text".
inline const json::value& at(const json::object& object, const std::string& pointer) {
  static const json::value missing = "(missing)";
  thread_local std::deque<json::value> kept;  // References stay good.
  kept.emplace_back(object);
  boost::system::error_code ec;
  const json::value* found = kept.back().find_pointer(pointer, ec);
  return found ? *found : missing;
}
inline std::string text_at(const json::object& object, const std::string& pointer) {
  return json::serialize(at(object, pointer));
}

}  // namespace troupe::net
