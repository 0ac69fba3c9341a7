// The interpreter's half that evaluates expressions.
#include <algorithm>
#include <cmath>

#include "model/chat/interpreter.hpp"
#include "model/chat/text_methods.hpp"

namespace troupe::model::jinja {
namespace {

/// What a value takes by itself: text, and a list's items with their texts, which are copies.
std::size_t size_of(const value& v) {
  if (const auto* t = v.as<text>()) return t->size();
  const auto* list = v.as<list_value>();
  if (list == nullptr) return 0;
  std::size_t bytes = 0;
  for (const value& item : *list->items) bytes += sizeof(value) + (item.is<text>() ? item.as<text>()->size() : 0);
  return bytes;
}

value undefined_value(const std::string& what) { return undefined{what}; }

[[noreturn]] void fail_undefined(const value& v) { throw failure("'" + v.as<undefined>()->name + "' is undefined"); }

std::string object_kind(const value& v) { return "'" + v.type_name() + " object'"; }

}  // namespace

value interpreter::evaluate(const expression& e, const scope_ptr& here) {
  step(e.line);
  const deeper level(*this, e.line);
  try {
    value out = evaluate_inner(e, here);
    const bool made = e.kind != expression_kind::name && e.kind != expression_kind::constant;
    if (made) account(size_of(out), e.line);
    return out;
  } catch (failure& problem) {
    if (problem.line == 0) problem.line = e.line;
    throw;
  }
}

value interpreter::evaluate_inner(const expression& e, const scope_ptr& here) {
  const auto part = [&](std::size_t i) { return evaluate(*e.parts[i], here); };
  switch (e.kind) {
    case expression_kind::constant:
      return e.constant;
    case expression_kind::name:
      return look_up(e.name, here);
    case expression_kind::list:
    case expression_kind::tuple: {
      sequence items;
      for (std::size_t i = 0; i < e.parts.size(); ++i) items.push_back(part(i));
      return value::list(std::move(items), e.kind == expression_kind::tuple);
    }
    case expression_kind::dict: {
      dictionary members;
      for (std::size_t i = 0; i < e.parts.size(); i += 2) {
        const value key = part(i);
        members.set(to_text(key), part(i + 1));
      }
      return value::dict(std::move(members));
    }
    case expression_kind::attribute:
      return attribute(part(0), e.name);
    case expression_kind::item:
      return item(part(0), part(1));
    case expression_kind::slice:
      return slice(e, here);
    case expression_kind::call:
      return call(e, here);
    case expression_kind::filter: {
      const value subject = part(0);
      arguments more = arguments_of(e, here);
      return filter(e.name, subject, more);
    }
    case expression_kind::test: {
      const value subject = part(0);
      arguments more = arguments_of(e, here);
      return test(e.name, subject, more);
    }
    case expression_kind::negate:
    case expression_kind::plus: {
      const value v = part(0);
      const bool negate = e.kind == expression_kind::negate;
      if (const auto whole = v.whole()) return value::integer(negate && *whole != INT64_MIN ? -*whole : *whole);
      if (const auto number = v.number()) return negate ? -*number : *number;
      if (v.is<undefined>()) fail_undefined(v);
      throw failure("bad operand type for unary -: '" + v.type_name() + "'");
    }
    case expression_kind::logical_not:
      return !part(0).truthy();
    case expression_kind::logical_and: {
      value left = part(0);
      return left.truthy() ? part(1) : left;
    }
    case expression_kind::logical_or: {
      value left = part(0);
      return left.truthy() ? left : part(1);
    }
    case expression_kind::binary:
      return binary(e, here);
    case expression_kind::compare:
      return compare_chain(e, here);
    case expression_kind::conditional:
      if (part(1).truthy()) return part(0);
      if (e.parts[2]) return part(2);
      return undefined_value("the inline if-expression evaluated to false and no else section was defined");
  }
  return {};
}

value interpreter::look_up(const std::string& name, const scope_ptr& here) const {
  const value* found = here->find(name);
  return found != nullptr ? *found : undefined_value(name);
}

value interpreter::attribute(const value& object, const std::string& name) {
  if (object.is<undefined>()) fail_undefined(object);
  if (auto method = method_of(object, name)) return *std::move(method);
  if (const auto* f = object.as<function_value>(); f != nullptr && f->macro && name == "name") return text(f->name);
  return item(object, text(name));
}

value interpreter::item(const value& object, const value& key) {
  if (object.is<undefined>()) fail_undefined(object);
  if (const auto* d = object.as<dict_value>()) {
    if (const auto* k = key.as<text>())
      if (const value* found = d->members->find(k->bytes())) return *found;
  } else if (const auto index = key.whole()) {
    const auto* t = object.as<text>();
    const auto* l = object.as<list_value>();
    const auto count = t != nullptr || l != nullptr ? static_cast<std::int64_t>(length_of(object)) : 0;
    const std::int64_t at = *index < 0 ? *index + count : *index;
    if (at >= 0 && at < count) {
      if (l != nullptr) return (*l->items)[static_cast<std::size_t>(at)];
      const std::size_t begin = character_offset(t->bytes(), static_cast<std::size_t>(at));
      return t->substr(begin, character_offset(std::string_view(t->bytes()).substr(begin), 1));
    }
  }
  if (const auto* k = key.as<text>()) {
    if (auto method = method_of(object, k->bytes())) return *std::move(method);
    return undefined_value(object_kind(object).substr(1, object_kind(object).size() - 2) + "' has no attribute '" +
                           k->bytes());
  }
  return undefined_value(to_text(key).bytes());
}

value interpreter::slice(const expression& e, const scope_ptr& here) {
  const value subject = evaluate(*e.parts[0], here);
  if (subject.is<undefined>()) fail_undefined(subject);
  const auto bound = [&](std::size_t i) -> std::optional<std::int64_t> {
    if (!e.parts[i]) return std::nullopt;
    const value v = evaluate(*e.parts[i], here);
    if (v.is<none>()) return std::nullopt;
    if (const auto whole = v.whole()) return *whole;
    throw failure("slice indices must be integers or None");
  };
  const auto from = bound(1);
  const auto to = bound(2);
  const std::int64_t stride = bound(3).value_or(1);
  if (stride == 0) throw failure("slice step cannot be zero");
  if (!subject.is<text>() && !subject.is<list_value>()) throw failure("'" + subject.type_name() + "' cannot be sliced");
  const auto count = static_cast<std::int64_t>(length_of(subject));
  const std::int64_t low = stride > 0 ? 0 : -1;
  const std::int64_t high = stride > 0 ? count : count - 1;
  const auto clamp = [&](std::int64_t at) { return std::clamp(at < 0 ? at + count : at, low, high); };
  const std::int64_t begin = from ? clamp(*from) : (stride > 0 ? low : high);
  const std::int64_t end = to ? clamp(*to) : (stride > 0 ? high : low);
  if (const auto* t = subject.as<text>(); t != nullptr && stride == 1) {
    if (begin >= end) return text();
    const std::size_t first = character_offset(t->bytes(), static_cast<std::size_t>(begin));
    return t->substr(
        first, character_offset(std::string_view(t->bytes()).substr(first), static_cast<std::size_t>(end - begin)));
  }
  const sequence items = items_of(subject);
  sequence out;
  for (std::int64_t at = begin; stride > 0 ? at < end : at > end; at += stride)
    out.push_back(items[static_cast<std::size_t>(at)]);
  if (!subject.is<text>()) return value::list(std::move(out), subject.as<list_value>()->tuple);
  text joined;
  for (const value& one : out) joined += *one.as<text>();
  return joined;
}

value interpreter::binary(const expression& e, const scope_ptr& here) {
  const value a = evaluate(*e.parts[0], here);
  const value b = evaluate(*e.parts[1], here);
  const std::string& op = e.name;
  if (op == "~") {
    text out = to_text(a);
    out += to_text(b);
    return out;
  }
  if (op == "+") return add(a, b);
  if (a.is<undefined>()) fail_undefined(a);
  if (b.is<undefined>()) fail_undefined(b);
  if (op == "%" && a.is<text>()) return format_percent(*a.as<text>(), b);
  const auto x = a.whole();
  const auto y = b.whole();
  if (op == "*" && (a.is<text>() || a.is<list_value>()) && y) {
    const std::size_t size = a.is<text>() ? a.as<text>()->size() : a.as<list_value>()->items->size() * sizeof(value);
    const std::size_t times = *y > 0 ? static_cast<std::size_t>(*y) : 0;
    if (size != 0 && times > limits_.output_bytes / size) throw failure("the template makes too much text");
    account(size * times, e.line);
    if (const auto* t = a.as<text>()) {
      text out;
      for (std::size_t i = 0; i < times; ++i) out += *t;
      return out;
    }
    sequence out;
    for (std::size_t i = 0; i < times; ++i)
      out.insert(out.end(), a.as<list_value>()->items->begin(), a.as<list_value>()->items->end());
    return value::list(std::move(out));
  }
  const auto p = a.number();
  const auto q = b.number();
  if (!p || !q)
    throw failure("unsupported operand type(s) for " + op + ": '" + a.type_name() + "' and '" + b.type_name() + "'");
  if ((op == "/" || op == "//" || op == "%") && *q == 0.0) throw failure("division by zero");
  if (op == "/") return *p / *q;
  if (x && y && op != "**") {
    std::int64_t out = 0;
    if (op == "-" && !__builtin_sub_overflow(*x, *y, &out)) return value::integer(out);
    if (op == "*" && !__builtin_mul_overflow(*x, *y, &out)) return value::integer(out);
    if (*y == -1) {  // the one quotient that overflows
      if (op == "%") return value::integer(0);
      if (op == "//" && *x != INT64_MIN) return value::integer(-*x);
    } else if (op == "//" || op == "%") {
      const std::int64_t rest = *x % *y;
      const bool adjust = rest != 0 && (rest < 0) != (*y < 0);
      if (op == "//") return value::integer(*x / *y - (adjust ? 1 : 0));
      return value::integer(adjust ? rest + *y : rest);
    }
    throw failure("an integer overflows");
  }
  if (op == "**") {
    const double power = std::pow(*p, *q);
    if (x && y && *y >= 0) {
      if (std::abs(power) > 9e15) throw failure("an integer overflows");
      return value::integer(static_cast<std::int64_t>(power));
    }
    return power;
  }
  if (op == "-") return *p - *q;
  if (op == "*") return *p * *q;
  const double quotient = std::floor(*p / *q);
  return op == "//" ? quotient : *p - quotient * *q;
}

value interpreter::compare_chain(const expression& e, const scope_ptr& here) {
  value left = evaluate(*e.parts[0], here);
  for (std::size_t i = 0; i < e.operators.size(); ++i) {
    value right = evaluate(*e.parts[i + 1], here);
    const std::string& op = e.operators[i];
    bool holds = false;
    if (op == "==")
      holds = equal(left, right);
    else if (op == "!=")
      holds = !equal(left, right);
    else if (op == "in")
      holds = contains(right, left);
    else if (op == "not in")
      holds = !contains(right, left);
    else if (left.is<undefined>())
      fail_undefined(left);
    else if (right.is<undefined>())
      fail_undefined(right);
    else {
      const int order = compare(left, right);
      holds = op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0;
    }
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

arguments interpreter::arguments_of(const expression& e, const scope_ptr& here) {
  arguments out;
  for (std::size_t i = 1; i < e.parts.size(); ++i) out.positional.push_back(evaluate(*e.parts[i], here));
  for (const auto& [name, what] : e.named) out.named.emplace_back(name, evaluate(*what, here));
  return out;
}

value interpreter::call(const expression& e, const scope_ptr& here) {
  const value callee = evaluate(*e.parts[0], here);
  arguments with = arguments_of(e, here);
  return call_value(callee, with);
}

value interpreter::call_value(const value& callee, arguments& with) {
  if (callee.is<undefined>()) fail_undefined(callee);
  if (const auto* d = callee.as<dict_value>(); d != nullptr && d->call) return (*d->call)(with);
  const auto* function = callee.as<function_value>();
  if (function == nullptr) throw failure("'" + callee.type_name() + "' object is not callable");
  return (*function->call)(with);
}

value interpreter::filter(std::string_view name, const value& subject, arguments& more) {
  auto out = apply_filter(name, subject, more, host_);
  if (!out) throw failure("No filter named '" + std::string(name) + "'.");
  return *std::move(out);
}

bool interpreter::test(std::string_view name, const value& subject, arguments& more) {
  const auto out = apply_test(name, subject, more);
  if (!out) throw failure("No test named '" + std::string(name) + "'.");
  return *out;
}

}  // namespace troupe::model::jinja
