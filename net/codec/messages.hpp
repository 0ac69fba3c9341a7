#pragma once

#include <boost/json/object.hpp>

#include "actors/service.hpp"
#include "net/json/object_reader.hpp"
#include "net/upstream.hpp"

namespace troupe::net {

/// Reads "messages", "tools", "documents", "chat_template_kwargs", "add_generation_prompt", "reasoning_effort" and
/// "tool_choice" into what the chat template sees. The template never meets what it would print as None or []: null
/// members are left out, absent content of an assistant or a tool is "", an empty tool_calls is left out, a list of
/// text parts is joined with nothing between. A tool call's arguments, a string at OpenAI, become the object that they
/// spell, which is what templates expect. Faults go to `in`.
actors::chat_prompt read_chat(object_reader& in, const model_facts& model);

}  // namespace troupe::net
