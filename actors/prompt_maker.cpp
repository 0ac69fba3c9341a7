#include "actors/prompt_maker.hpp"

#include <algorithm>
#include <boost/json.hpp>

namespace troupe::actors {
namespace {

/// Every message's text as the one part of a list.
void make_parts(boost::json::object& variables) {
  auto* messages = variables.if_contains("messages");
  if (messages == nullptr || !messages->is_array()) return;
  for (auto& message : messages->get_array()) {
    auto* content = message.is_object() ? message.get_object().if_contains("content") : nullptr;
    if (content == nullptr || !content->is_string()) continue;
    boost::json::object part{{"type", "text"}, {"text", *content}};
    *content = boost::json::array{std::move(part)};
  }
}

}  // namespace

prompt_memo::tokens prompt_memo::find(const std::string& key) {
  const std::lock_guard lock(guard_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->second;
}

std::size_t prompt_memo::size_of(const std::string& key, const tokens& value) {
  return 2 * key.size() + value->size() * sizeof(token_id);  // the key lies in the list and in the index
}

void prompt_memo::store(std::string key, tokens value) {
  const std::size_t size = size_of(key, value);
  const std::lock_guard lock(guard_);
  if (most_entries_ == 0 || size > most_bytes_ / 16 || entries_.contains(key)) return;
  while (entries_.size() >= most_entries_ || bytes_ + size > most_bytes_) {
    const auto& [oldest, ids] = recent_.back();
    bytes_ -= size_of(oldest, ids);
    entries_.erase(oldest);
    recent_.pop_back();
  }
  bytes_ += size;
  recent_.emplace_front(std::move(key), std::move(value));
  entries_.emplace(recent_.front().first, recent_.begin());
}

prompt_maker::prompt_maker(const model::tokenizer& text, const model::chat_template* chat, std::size_t vocabulary,
                           std::uint32_t max_context, std::size_t memo_entries)
    : text_(text), chat_(chat), vocabulary_(vocabulary), max_context_(max_context), memo_(memo_entries) {
  for (std::size_t id = 0; id < text.vocab_size(); ++id)
    longest_token_ = std::max(longest_token_, text.token_text(static_cast<token_id>(id)).size());
}

result<void> prompt_maker::check_length(std::size_t bytes, std::string_view field) const {
  const std::size_t most = (std::size_t{max_context_} + 1) * longest_token_;
  if (bytes <= most) return {};
  return error{error_kind::too_large,
               "the prompt has " + std::to_string(bytes) + " bytes and cannot fit the context of " +
                   std::to_string(max_context_) + " tokens",
               std::string(field)};
}

result<std::vector<token_id>> prompt_maker::tokens_of_text(const std::string& text, bool add_special,
                                                           bool parse_special) {
  if (auto fits = check_length(text.size(), "prompt"); !fits) return std::move(fits).error();
  std::string key = {add_special ? 's' : '-', parse_special ? 'p' : '-'};
  key += text;
  if (const auto known = memo_.find(key)) return *known;
  auto ids =
      text_.encode(text, add_special, parse_special ? model::special_tokens::parse : model::special_tokens::as_text);
  memo_.store(std::move(key), std::make_shared<const std::vector<token_id>>(ids));
  return ids;
}

result<std::vector<token_id>> prompt_maker::tokens_of_chat(const chat_prompt& chat, bool add_special,
                                                           std::chrono::system_clock::time_point now) {
  if (chat_ == nullptr)
    return error{error_kind::invalid,
                 "this model has no chat template; use /v1/completions or name one with --chat-template", "messages"};
  boost::json::object variables = chat.variables;
  if (chat_->wants_content_parts()) make_parts(variables);
  variables["add_generation_prompt"] = chat.add_generation_prompt;
  const auto set_token = [&](const char* name, std::optional<token_id> id) {
    if (id) variables[name] = text_.token_text(*id);
  };
  set_token("bos_token", text_.bos());
  set_token("eos_token", text_.eos());
  auto rendered = chat_->render(variables, now);
  if (!rendered) {
    error failure = std::move(rendered).error();
    failure.place = "messages";  // the template's line would tell a client nothing
    return failure;
  }
  if (auto fits = check_length(rendered->text.size(), "messages"); !fits) return std::move(fits).error();

  std::vector<model::prompt_span> spans;
  std::string key = add_special ? "cs" : "c-";
  const std::string_view text = rendered->text;
  std::size_t at = 0;
  for (const auto& user : rendered->from_user) {
    if (user.begin > at) spans.push_back({text.substr(at, user.begin - at), false});
    spans.push_back({text.substr(user.begin, user.end - user.begin), true});
    key += std::to_string(user.begin) + '-' + std::to_string(user.end) + ',';
    at = user.end;
  }
  if (at < text.size()) spans.push_back({text.substr(at), false});
  key += ';';  // where the ranges end: the text may begin as they do
  key += text;
  if (const auto known = memo_.find(key)) return *known;
  auto ids = text_.encode_spans(spans, add_special);
  memo_.store(std::move(key), std::make_shared<const std::vector<token_id>>(ids));
  return ids;
}

result<std::vector<token_id>> prompt_maker::tokens_of(const prompt_input& prompt, bool add_special, bool parse_special,
                                                      std::chrono::system_clock::time_point now) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return tokens_of_text(*text, add_special, parse_special);
  if (const auto* chat = std::get_if<chat_prompt>(&prompt)) return tokens_of_chat(*chat, add_special, now);
  const auto& ids = std::get<std::vector<token_id>>(prompt);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || static_cast<std::size_t>(ids[i]) >= vocabulary_)
      return error{
          error_kind::invalid,
          "token id " + std::to_string(ids[i]) + " is outside the vocabulary of " + std::to_string(vocabulary_),
          "prompt[" + std::to_string(i) + "]"};
  return ids;
}

result<prompt_maker::room> prompt_maker::room_for(std::size_t prompt_tokens,
                                                  std::optional<std::uint32_t> max_tokens) const {
  if (prompt_tokens == 0) return error{error_kind::invalid, "the prompt is empty: it has no token", "prompt"};
  const std::string context = "the model's context holds " + std::to_string(max_context_) + " tokens, the prompt has " +
                              std::to_string(prompt_tokens);
  if (prompt_tokens > max_context_ || (!max_tokens && prompt_tokens == max_context_))
    return error{error_kind::too_large, context + " and leaves no room for an answer", "prompt"};
  const auto left = static_cast<std::uint32_t>(max_context_ - prompt_tokens);
  if (max_tokens && *max_tokens > left)
    return error{error_kind::too_large, context + " and max_tokens asks for " + std::to_string(*max_tokens) + " more",
                 "max_tokens"};
  return room{max_tokens.value_or(left)};
}

}  // namespace troupe::actors
