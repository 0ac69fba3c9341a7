#include "model/chat/content_form.hpp"

#include <algorithm>

namespace troupe::model::jinja {
namespace {

struct findings {
  bool loops_over_content = false;
  bool asks_for_a_string = false;
};

/// x.content, x['content'] or content, also where filtered, sliced or chosen between. Documents have contents too.
bool is_content(const expression& e) {
  const auto of_document = [](const expression& owner) {
    return owner.kind == expression_kind::name && owner.name.starts_with("doc");
  };
  switch (e.kind) {
    case expression_kind::name:
      return e.name == "content";
    case expression_kind::attribute:
      return e.name == "content" && !of_document(*e.parts[0]);
    case expression_kind::item: {
      const auto* key = e.parts[1]->constant.as<text>();
      return key != nullptr && key->bytes() == "content" && !of_document(*e.parts[0]);
    }
    case expression_kind::filter:
    case expression_kind::slice:
    case expression_kind::logical_or:
    case expression_kind::conditional:
      return is_content(*e.parts[0]);
    default:
      return false;
  }
}

void look_at(const expression* e, findings& found) {
  if (e == nullptr) return;
  if (e->kind == expression_kind::test && e->name == "string") found.asks_for_a_string = true;
  for (const auto& part : e->parts) look_at(part.get(), found);
  for (const auto& [name, part] : e->named) look_at(part.get(), found);
}

void look_at(const block& body, findings& found) {
  for (const statement& s : body) {
    if (s.kind == statement_kind::for_ && is_content(*s.values[0])) found.loops_over_content = true;
    for (const auto& one : s.values) look_at(one.get(), found);
    for (const block& inner : s.blocks) look_at(inner, found);
  }
}

}  // namespace

bool needs_content_parts(const block& program) {
  findings found;
  look_at(program, found);
  return found.loops_over_content && !found.asks_for_a_string;
}

}  // namespace troupe::model::jinja
