#include "net/codec/messages.hpp"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "base/json/strict_json.hpp"

namespace troupe::net {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 6> roles{"system", "developer", "user", "assistant", "tool", "function"};
constexpr std::size_t argument_depth = 64;

std::string at(const std::string& place, std::size_t index) { return place + "[" + std::to_string(index) + "]"; }

/// `value` without members that are null, at any depth of objects.
json::value without_nulls(const json::value& value) {
  if (value.is_array()) {
    json::array out;
    for (const json::value& one : value.get_array()) out.push_back(without_nulls(one));
    return out;
  }
  if (!value.is_object()) return value;
  json::object out;
  for (const auto& [key, member] : value.get_object())
    if (!member.is_null()) out.emplace(key, without_nulls(member));
  return out;
}

/// One part of a message's content as text; "refusal" is what an assistant's earlier answer may hold.
std::string part_text(const json::value& part, const std::string& place, object_reader& in) {
  if (!part.is_object()) {
    in.fail(place, "must be an object such as {\"type\": \"text\", \"text\": \"...\"}");
    return {};
  }
  object_reader fields(part.get_object(), place);
  const auto type = fields.text("type");
  std::string text;
  if (fields.failure()) {
  } else if (!type) {
    fields.fail("type", "is required");
  } else if (*type == "text" || *type == "refusal") {
    const auto given = fields.text(*type);
    if (!given) fields.fail(*type, "is required");
    text = given.value_or("");
  } else {
    fields.fail("type",
                "must be \"text\": this model reads nothing else, and the part is '" + type->substr(0, 40) + "'");
  }
  if (fields.failure()) in.fail(*fields.failure());
  return text;
}

std::string read_content(object_reader& message, std::string_view role, object_reader& in) {
  const json::value* content = message.any("content");
  if (!content) {
    if (role != "assistant" && role != "tool" && role != "function") message.fail("content", "is required");
    return {};
  }
  if (content->is_string()) return std::string(content->get_string());
  if (!content->is_array()) {
    message.fail("content", "must be a string or an array of parts, but is " + std::string(kind_name(*content)));
    return {};
  }
  std::string text;
  std::size_t index = 0;
  for (const json::value& part : content->get_array())
    text += part_text(part, at(message.place_of("content"), index++), in);
  return text;
}

/// The object that a call's arguments spell, or the text where it spells none: templates print either.
json::value read_arguments(const json::value& given) {
  if (!given.is_string()) return given;
  auto parsed = parse_json(given.get_string(), argument_depth);
  return parsed && parsed->is_object() ? *std::move(parsed) : given;
}

json::array read_tool_calls(const json::array& calls, const std::string& place, object_reader& in) {
  json::array out;
  for (const json::value& call : calls) {
    const std::string here = at(place, out.size());
    if (!call.is_object()) {
      in.fail(here, "must be an object");
      return out;
    }
    object_reader fields(call.get_object(), here);
    const auto* function = fields.object("function");
    if (!function) fields.fail("function", "is required");
    fields.text("id");
    if (function) {
      object_reader inner(*function, fields.place_of("function"));
      if (!inner.text("name")) inner.fail("name", "is required");
      if (inner.failure()) fields.fail(*inner.failure());
    }
    if (fields.failure()) {
      in.fail(*fields.failure());
      return out;
    }
    json::value clean = without_nulls(call);
    if (auto* arguments = clean.get_object()["function"].get_object().if_contains("arguments"))
      *arguments = read_arguments(*arguments);
    out.push_back(std::move(clean));
  }
  return out;
}

json::object read_message(const json::value& given, const std::string& place, object_reader& in) {
  json::object out;
  if (!given.is_object()) {
    in.fail(place, "must be an object, but is " + std::string(kind_name(given)));
    return out;
  }
  object_reader fields(given.get_object(), place);
  const auto role = fields.text("role");
  if (!role) {
    fields.fail("role", "is required");
  } else if (std::find(roles.begin(), roles.end(), *role) == roles.end()) {
    fields.fail("role", "'" + role->substr(0, 40) + "' is none of system, developer, user, assistant, tool");
  } else {
    out["role"] = *role;
    out["content"] = read_content(fields, *role, in);
    for (const auto& [key, value] : given.get_object()) {
      if (key == "role" || key == "content" || key == "tool_calls" || value.is_null()) continue;
      if (key == "name" || key == "tool_call_id") fields.text({key.data(), key.size()});
      out.emplace(key, without_nulls(value));
    }
    if (const auto* calls = fields.array("tool_calls"); calls && !calls->empty())
      out["tool_calls"] = read_tool_calls(*calls, fields.place_of("tool_calls"), in);
  }
  if (fields.failure()) in.fail(*fields.failure());
  return out;
}

void read_messages(object_reader& in, json::object& variables) {
  const json::array* given = in.array("messages");
  if (!given || given->empty()) {
    in.fail("messages", given ? "must not be empty" : "is required");
    return;
  }
  json::array messages;
  messages.reserve(given->size());
  for (const json::value& one : *given) {
    messages.push_back(read_message(one, at("messages", messages.size()), in));
    if (in.failure()) return;
  }
  variables["messages"] = std::move(messages);
}

void read_tools(object_reader& in, json::object& variables) {
  const json::array* tools = in.array("tools");
  const json::value* choice = in.any("tool_choice");
  const bool none = choice && choice->is_string() && choice->get_string() == "none";
  const bool automatic = choice && choice->is_string() && choice->get_string() == "auto";
  if (choice && !none && !automatic)
    in.fail(error{error_kind::unsupported, "must be \"none\" or \"auto\" on this server", "tool_choice"});
  if (!tools || tools->empty() || none) return;
  std::size_t index = 0;
  for (const json::value& tool : *tools) {
    const std::string place = at("tools", index++);
    if (!tool.is_object()) return in.fail(place, "must be an object");
    object_reader fields(tool.get_object(), place);
    const auto* function = fields.object("function");
    if (!function) fields.fail("function", "is required");
    if (function) {
      object_reader inner(*function, fields.place_of("function"));
      if (!inner.text("name")) inner.fail("name", "is required");
      if (inner.failure()) fields.fail(*inner.failure());
    }
    if (fields.failure()) return in.fail(*fields.failure());
  }
  variables["tools"] = *tools;
}

void read_template_arguments(object_reader& in, json::object& variables) {
  static constexpr std::array<std::string_view, 8> reserved{
      "messages", "tools", "documents", "bos_token", "eos_token", "unk_token", "pad_token", "add_generation_prompt"};
  if (const json::array* documents = in.array("documents"); documents && !documents->empty())
    variables["documents"] = *documents;
  if (const auto effort = in.text("reasoning_effort")) variables["reasoning_effort"] = *effort;
  const json::object* arguments = in.object("chat_template_kwargs");
  if (!arguments) return;
  for (const auto& [key, value] : *arguments) {
    if (std::find(reserved.begin(), reserved.end(), std::string_view(key.data(), key.size())) != reserved.end())
      in.fail("chat_template_kwargs", "must not set '" + std::string(key) + "'");
    else
      variables[key] = value;
  }
}

}  // namespace

actors::chat_prompt read_chat(object_reader& in, const model_facts& model) {
  actors::chat_prompt chat;
  if (!model.has_chat_template)
    in.fail(error{error_kind::unsupported, "the model has no chat template; use a plain prompt instead", "messages"});
  if (in.has("chat_template"))
    in.fail(error{error_kind::unsupported, "a request cannot bring its own template", "chat_template"});
  if (in.boolean("continue_final_message").value_or(false))
    in.fail(error{error_kind::unsupported, "this server does not support it", "continue_final_message"});
  read_messages(in, chat.variables);
  read_tools(in, chat.variables);
  read_template_arguments(in, chat.variables);
  chat.add_generation_prompt = in.boolean("add_generation_prompt").value_or(true);
  return chat;
}

}  // namespace troupe::net
