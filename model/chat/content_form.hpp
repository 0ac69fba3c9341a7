#pragma once

#include "model/chat/syntax.hpp"

namespace troupe::model::jinja {

/// Whether a template can only read a message's content as a list of parts: it loops over `….content` (or over a
/// variable or parameter named content) and nowhere asks whether something is a string. A template that does neither,
/// or that takes both forms, is given text.
bool needs_content_parts(const block& program);

}  // namespace troupe::model::jinja
