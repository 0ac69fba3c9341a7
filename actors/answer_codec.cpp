#include "actors/answer_codec.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>

#include "base/hex.hpp"

namespace troupe::actors {
namespace {

namespace json = boost::json;

std::string text_of(const json::value& value) {
  return std::string(value.as_string().data(), value.as_string().size());
}

json::value encode(const token_detail& detail) {
  json::object out{{"id", detail.id}, {"text", detail.text}, {"bytes", to_hex(detail.bytes)}};
  if (detail.logprob) out["logprob"] = *detail.logprob;
  json::array top;
  for (const auto& a : detail.top)
    top.push_back({{"id", a.id}, {"text", a.text}, {"bytes", to_hex(a.bytes)}, {"logprob", a.logprob}});
  if (!top.empty()) out["top"] = std::move(top);
  return out;
}

token_detail decode_detail(const json::value& value) {
  const auto& object = value.as_object();
  token_detail out;
  out.id = object.at("id").to_number<token_id>();
  out.text = text_of(object.at("text"));
  out.bytes = from_hex(text_of(object.at("bytes")));
  if (const auto* logprob = object.if_contains("logprob")) out.logprob = logprob->to_number<float>();
  if (const auto* top = object.if_contains("top"))
    for (const auto& a : top->as_array())
      out.top.push_back({a.at("id").to_number<token_id>(), text_of(a.at("text")), from_hex(text_of(a.at("bytes"))),
                         a.at("logprob").to_number<float>()});
  return out;
}

json::array encode(const std::vector<token_detail>& details) {
  json::array out;
  for (const auto& detail : details) out.push_back(encode(detail));
  return out;
}

std::vector<token_detail> decode_details(const json::value& value) {
  std::vector<token_detail> out;
  for (const auto& item : value.as_array()) out.push_back(decode_detail(item));
  return out;
}

json::array encode_ids(const std::vector<token_id>& ids) { return json::array(ids.begin(), ids.end()); }

json::value encode(const generation_started& e) {
  return {{"started", true},
          {"ids", encode_ids(e.prompt_ids)},
          {"details", encode(e.prompt_details)},
          {"text", e.prompt_text}};
}
json::value encode(const generation_delta& e) {
  return {{"delta", e.choice}, {"text", e.text}, {"tokens", encode(e.tokens)}};
}
json::value encode(const generation_finished& e) {
  json::object out{{"finished", e.choice}, {"reason", static_cast<int>(e.reason)}, {"count", e.completion_tokens}};
  if (const auto* text = std::get_if<std::string>(&e.stop_reason)) out["stop"] = *text;
  if (const auto* id = std::get_if<token_id>(&e.stop_reason)) out["stop"] = *id;
  return out;
}
json::value encode(const generation_done& e) {
  return {{"done", true}, {"prompt", e.prompt_tokens}, {"completion", e.completion_tokens}};
}
json::value encode(const generation_failed&) { return nullptr; }

generation_event decode(const json::object& object) {
  if (object.contains("started")) {
    generation_started out;
    for (const auto& id : object.at("ids").as_array()) out.prompt_ids.push_back(id.to_number<token_id>());
    out.prompt_details = decode_details(object.at("details"));
    out.prompt_text = text_of(object.at("text"));
    return out;
  }
  if (object.contains("delta"))
    return generation_delta{object.at("delta").to_number<std::uint32_t>(), text_of(object.at("text")),
                            decode_details(object.at("tokens"))};
  if (object.contains("finished")) {
    generation_finished out;
    out.choice = object.at("finished").to_number<std::uint32_t>();
    out.reason = object.at("reason").to_number<int>() == 0 ? finish_reason::stop : finish_reason::length;
    out.completion_tokens = object.at("count").to_number<std::uint32_t>();
    if (const auto* stop = object.if_contains("stop")) {
      if (stop->is_string())
        out.stop_reason = text_of(*stop);
      else
        out.stop_reason = stop->to_number<token_id>();
    }
    return out;
  }
  generation_done out;
  out.prompt_tokens = object.at("prompt").to_number<std::uint32_t>();
  out.completion_tokens = object.at("completion").to_number<std::uint32_t>();
  return out;
}

json::value prompt_value(const prompt_input& prompt) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return {{"text", *text}};
  if (const auto* ids = std::get_if<std::vector<token_id>>(&prompt)) return {{"ids", encode_ids(*ids)}};
  const auto& chat = std::get<chat_prompt>(prompt);
  // Values as text: a template sees the order of their members, and 2.0 apart from 2.
  json::object variables;
  for (const auto& [name, what] : chat.variables) variables[name] = json::serialize(what);
  return {{"chat", std::move(variables)}, {"opens", chat.add_generation_prompt}};
}

}  // namespace

std::string encode_answer(const std::vector<generation_event>& events) {
  json::array out;
  for (const auto& event : events) out.push_back(std::visit([](const auto& e) { return encode(e); }, event));
  return json::serialize(out);
}

result<std::vector<generation_event>> decode_answer(const std::string& text) try {
  std::vector<generation_event> out;
  const json::value parsed = json::parse(text);
  for (const auto& event : parsed.as_array()) out.push_back(decode(event.as_object()));
  return out;
} catch (const std::exception& failure) {
  return error{error_kind::corrupt, std::string("a cached answer cannot be read: ") + failure.what(), "cache"};
}

json::value normalized_request(const generation_request& r, const std::string& model_digest,
                               const std::string& precision) {
  const auto& s = r.sampling;
  json::array bias;
  for (const auto& [id, value] : s.logit_bias) bias.push_back({id, value});
  const bool greedy = s.greedy();
  return {{"model", model_digest},
          {"precision", precision},
          {"tenant", r.tenant},
          {"prompt", prompt_value(r.prompt)},
          {"add_special", r.add_special_tokens},
          {"parse_special", r.parse_special_tokens},
          {"skip_special", r.skip_special_tokens},
          {"temperature", greedy ? 0.0 : s.temperature},
          {"top_k", s.top_k},
          {"top_p", s.top_p},
          {"min_p", s.min_p},
          {"typical_p", s.typical_p},
          {"repetition", s.repetition_penalty},
          {"presence", s.presence_penalty},
          {"frequency", s.frequency_penalty},
          {"bias", std::move(bias)},
          {"seed", greedy ? std::uint64_t{0} : s.seed},
          {"min_tokens", s.min_tokens},
          {"ignore_eos", s.ignore_eos},
          {"top_logprobs", s.top_logprobs},
          {"max_tokens", r.max_tokens ? json::value(*r.max_tokens) : json::value(nullptr)},
          {"stop", json::value_from(r.stop)},
          {"stop_ids", encode_ids(r.stop_token_ids)},
          {"n", r.n},
          {"echo", r.echo},
          {"prompt_logprobs", r.prompt_logprobs}};
}

}  // namespace troupe::actors
