#include "net/codec/answer_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/json/utf8.hpp"

namespace troupe::net {
namespace {

namespace json = boost::json;
using actors::token_detail;

/// OpenAI's value for "very unlikely": JSON has no infinity.
constexpr double least_logprob = -9999.0;

double logprob_json(float value) {
  return std::isfinite(value) ? std::max(least_logprob, static_cast<double>(value)) : least_logprob;
}

json::value logprob_json(const std::optional<float>& value) {
  return value ? json::value(logprob_json(*value)) : json::value(nullptr);
}

json::array bytes_json(const std::string& bytes) {
  json::array out;
  out.reserve(bytes.size());
  for (const unsigned char byte : bytes) out.emplace_back(static_cast<unsigned>(byte));
  return out;
}

/// A token's name among others: its text, or its bytes where they are no text.
std::string spelling(const std::string& text, const std::string& bytes) {
  if (bytes.empty() || valid_utf8_prefix(bytes) == bytes.size()) return to_valid_utf8(text);
  std::string name = "bytes:";
  char hex[8];
  for (const unsigned char byte : bytes) {
    std::snprintf(hex, sizeof hex, "\\x%02x", byte);
    name += hex;
  }
  return name;
}

template <class Token>
json::object chat_token_json(const Token& token) {
  return {
      {"token", text_json(token.text)}, {"logprob", logprob_json(token.logprob)}, {"bytes", bytes_json(token.bytes)}};
}

/// The alternatives and the token itself, each name once: the more likely one keeps it.
json::value top_json(const token_detail& token, const std::string& name) {
  if (!token.logprob) return nullptr;
  json::object top;
  for (const auto& other : token.top) top.emplace(spelling(other.text, other.bytes), logprob_json(other.logprob));
  top.emplace(name, logprob_json(*token.logprob));
  return top;
}

}  // namespace

json::object usage_json(const token_usage& usage) {
  return {{"prompt_tokens", usage.prompt},
          {"completion_tokens", usage.completion},
          {"total_tokens", usage.prompt + usage.completion},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached}}}};
}

json::value stop_reason_json(const actors::generation_finished& end) {
  if (const auto* text = std::get_if<std::string>(&end.stop_reason)) return text_json(*text);
  if (const auto* id = std::get_if<token_id>(&end.stop_reason)) return *id;
  return nullptr;
}

std::string_view finish_reason_text(const actors::generation_finished& end) { return to_string(end.reason); }

json::array ids_json(std::span<const token_id> ids) { return json::array(ids.begin(), ids.end()); }

json::array ids_json(std::span<const token_detail> tokens) {
  json::array out;
  out.reserve(tokens.size());
  for (const token_detail& token : tokens) out.emplace_back(token.id);
  return out;
}

json::string text_json(std::string text) { return json::string(to_valid_utf8(std::move(text))); }

json::object chat_logprobs_json(std::span<const token_detail> tokens) {
  json::array content;
  content.reserve(tokens.size());
  for (const token_detail& token : tokens) {
    json::object entry = chat_token_json(token);
    json::array top;
    for (const auto& other : token.top) top.push_back(chat_token_json(other));
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

json::object completion_logprobs_json(std::span<const token_detail> tokens, std::size_t& offset) {
  json::array offsets, logprobs, names, tops;
  for (const token_detail& token : tokens) {
    const std::string name = spelling(token.text, token.bytes);
    offsets.emplace_back(offset);
    offset += count_characters(token.bytes.empty() ? token.text : token.bytes);
    logprobs.push_back(logprob_json(token.logprob));
    tops.push_back(top_json(token, name));
    names.emplace_back(name);
  }
  return {{"text_offset", std::move(offsets)},
          {"token_logprobs", std::move(logprobs)},
          {"tokens", std::move(names)},
          {"top_logprobs", std::move(tops)}};
}

json::array prompt_logprobs_json(std::span<const token_detail> prompt) {
  const auto entry = [](float logprob, json::value rank, const std::string& text) {
    return json::object{
        {"logprob", logprob_json(logprob)}, {"rank", std::move(rank)}, {"decoded_token", text_json(text)}};
  };
  json::array out;
  out.reserve(prompt.size());
  for (const token_detail& token : prompt) {
    if (!token.logprob) {
      out.emplace_back(nullptr);
      continue;
    }
    json::object alternatives;
    std::uint64_t rank = 0;
    for (const auto& other : token.top)
      alternatives.emplace(std::to_string(other.id), entry(other.logprob, ++rank, other.text));
    alternatives.emplace(std::to_string(token.id), entry(*token.logprob, nullptr, token.text));
    out.push_back(std::move(alternatives));
  }
  return out;
}

}  // namespace troupe::net
