#include "model/chat/expression_parser.hpp"

#include <algorithm>
#include <charconv>

namespace troupe::model::jinja {
namespace {

expression_ptr join(expression_kind kind, std::string name, std::size_t line, expression_ptr left,
                    expression_ptr right) {
  auto out = make_expression(kind, line);
  out->name = std::move(name);
  out->parts.push_back(std::move(left));
  out->parts.push_back(std::move(right));
  return out;
}

}  // namespace

expression_ptr make_expression(expression_kind kind, std::size_t line) {
  auto out = std::make_unique<expression>();
  out->kind = kind;
  out->line = line;
  return out;
}

bool expression_parser::at_end_of_tuple() const {
  const auto kind = in_.peek().kind;
  return kind == token_kind::end_block || kind == token_kind::end_output || kind == token_kind::end || in_.is_op(")") ||
         in_.is_name("if") || in_.is_name("in") || in_.is_name("recursive") || in_.is_op("=");
}

expression_ptr expression_parser::parse_tuple(bool conditional) {
  const std::size_t line = in_.peek().line;
  auto first = conditional ? parse_expression() : parse_or();
  if (!in_.is_op(",")) return first;
  auto out = make_expression(expression_kind::tuple, line);
  out->parts.push_back(std::move(first));
  while (in_.take_op(",")) {
    if (at_end_of_tuple()) break;
    out->parts.push_back(conditional ? parse_expression() : parse_or());
  }
  return out;
}

expression_ptr expression_parser::parse_expression() {
  const token_reader::deeper level(in_);
  auto out = parse_or();
  while (in_.is_name("if")) {
    auto choice = make_expression(expression_kind::conditional, in_.take().line);
    choice->parts.push_back(std::move(out));
    choice->parts.push_back(parse_or());
    choice->parts.push_back(in_.take_name("else") ? parse_expression() : nullptr);
    out = std::move(choice);
  }
  return out;
}

expression_ptr expression_parser::parse_or() {
  auto left = parse_and();
  while (in_.is_name("or")) {
    const std::size_t line = in_.take().line;
    left = join(expression_kind::logical_or, {}, line, std::move(left), parse_and());
  }
  return left;
}

expression_ptr expression_parser::parse_and() {
  auto left = parse_not();
  while (in_.is_name("and")) {
    const std::size_t line = in_.take().line;
    left = join(expression_kind::logical_and, {}, line, std::move(left), parse_not());
  }
  return left;
}

expression_ptr expression_parser::parse_not() {
  if (!in_.is_name("not")) return parse_compare();
  const token_reader::deeper level(in_);
  auto out = make_expression(expression_kind::logical_not, in_.take().line);
  out->parts.push_back(parse_not());
  return out;
}

std::string expression_parser::comparison() {
  for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"})
    if (in_.take_op(op)) return std::string(op);
  if (in_.take_name("in")) return "in";
  if (in_.is_name("not") && in_.is_name("in", 1)) {
    in_.take();
    in_.take();
    return "not in";
  }
  return {};
}

expression_ptr expression_parser::parse_compare() {
  const std::size_t line = in_.peek().line;
  auto left = parse_sum();
  std::string op = comparison();
  if (op.empty()) return left;
  auto out = make_expression(expression_kind::compare, line);
  out->parts.push_back(std::move(left));
  for (; !op.empty(); op = comparison()) {
    out->operators.push_back(op);
    out->parts.push_back(parse_sum());
  }
  return out;
}

expression_ptr expression_parser::parse_chain(std::initializer_list<std::string_view> operators,
                                              expression_ptr (expression_parser::*operand)()) {
  auto left = (this->*operand)();
  const auto at_operator = [&] {
    return std::any_of(operators.begin(), operators.end(), [&](std::string_view op) { return in_.is_op(op); });
  };
  while (at_operator()) {
    const token op = in_.take();
    left = join(expression_kind::binary, op.text, op.line, std::move(left), (this->*operand)());
  }
  return left;
}

expression_ptr expression_parser::parse_unary(bool with_filters) {
  const token_reader::deeper level(in_);
  expression_ptr out;
  if (in_.is_op("-") || in_.is_op("+")) {
    out = make_expression(in_.is_op("-") ? expression_kind::negate : expression_kind::plus, in_.peek().line);
    in_.take();
    out->parts.push_back(parse_unary(false));
  } else {
    out = parse_postfix(parse_primary());
  }
  return with_filters ? parse_filters(std::move(out)) : std::move(out);
}

expression_ptr expression_parser::parse_primary() {
  const token t = in_.take();
  auto out = make_expression(expression_kind::constant, t.line);
  switch (t.kind) {
    case token_kind::string: {
      std::string all = t.text;
      while (in_.peek().kind == token_kind::string) all += in_.take().text;
      out->constant = text(all);
      return out;
    }
    case token_kind::integer: {
      std::int64_t number = 0;
      const auto read = std::from_chars(t.text.data(), t.text.data() + t.text.size(), number);
      if (read.ec != std::errc()) throw failure("the integer " + t.text.substr(0, 40) + " is too large", t.line);
      out->constant = value::integer(number);
      return out;
    }
    case token_kind::number:
      out->constant = std::strtod(t.text.c_str(), nullptr);
      return out;
    case token_kind::name:
      if (t.text == "true" || t.text == "True")
        out->constant = true;
      else if (t.text == "false" || t.text == "False")
        out->constant = false;
      else if (t.text == "none" || t.text == "None")
        out->constant = none{};
      else {
        out->kind = expression_kind::name;
        out->name = t.text;
        named_.varargs = named_.varargs || t.text == "varargs";
        named_.kwargs = named_.kwargs || t.text == "kwargs";
      }
      return out;
    case token_kind::op:
      if (t.text == "(") return parse_parentheses(t.line);
      if (t.text == "[") return parse_items(expression_kind::list, "]", t.line);
      if (t.text == "{") return parse_dict(t.line);
      break;
    default:
      break;
  }
  throw failure("unexpected '" + t.text + "'", t.line);
}

expression_ptr expression_parser::parse_parentheses(std::size_t line) {
  if (in_.take_op(")")) return make_expression(expression_kind::tuple, line);
  auto out = parse_tuple();
  in_.expect_op(")");
  return out;
}

expression_ptr expression_parser::parse_items(expression_kind kind, std::string_view end, std::size_t line) {
  auto out = make_expression(kind, line);
  while (!in_.is_op(end)) {
    out->parts.push_back(parse_expression());
    if (!in_.take_op(",")) break;
  }
  in_.expect_op(end);
  return out;
}

expression_ptr expression_parser::parse_dict(std::size_t line) {
  auto out = make_expression(expression_kind::dict, line);
  while (!in_.is_op("}")) {
    out->parts.push_back(parse_expression());
    in_.expect_op(":");
    out->parts.push_back(parse_expression());
    if (!in_.take_op(",")) break;
  }
  in_.expect_op("}");
  return out;
}

expression_ptr expression_parser::parse_postfix(expression_ptr out) {
  while (true) {
    const std::size_t line = in_.peek().line;
    if (in_.take_op(".")) {
      auto next = make_expression(expression_kind::attribute, line);
      if (in_.peek().kind == token_kind::integer) {
        next->kind = expression_kind::item;
        next->parts.push_back(std::move(out));
        next->parts.push_back(parse_primary());
      } else {
        next->name = in_.expect_name();
        next->parts.push_back(std::move(out));
      }
      out = std::move(next);
    } else if (in_.take_op("[")) {
      out = parse_subscript(std::move(out), line);
    } else if (in_.is_op("(")) {
      auto next = make_expression(expression_kind::call, line);
      next->parts.push_back(std::move(out));
      parse_arguments(*next);
      out = std::move(next);
    } else {
      return out;
    }
  }
}

expression_ptr expression_parser::parse_subscript(expression_ptr subject, std::size_t line) {
  expression_ptr parts[3];
  std::size_t count = 0;
  bool sliced = false;
  while (!in_.is_op("]")) {
    if (in_.take_op(":")) {
      sliced = true;
      if (++count > 2) in_.fail("a slice has at most three parts");
    } else {
      if (parts[count]) in_.fail("expected ']'");
      parts[count] = parse_expression();
    }
  }
  in_.expect_op("]");
  auto out = make_expression(sliced ? expression_kind::slice : expression_kind::item, line);
  out->parts.push_back(std::move(subject));
  if (!sliced && !parts[0]) in_.fail("a subscript is empty");
  for (std::size_t i = 0; i < (sliced ? 3U : 1U); ++i) out->parts.push_back(std::move(parts[i]));
  return out;
}

void expression_parser::parse_arguments(expression& call) {
  in_.expect_op("(");
  while (!in_.is_op(")")) {
    if (in_.peek().kind == token_kind::name && in_.is_op("=", 1)) {
      std::string name = in_.take().text;
      in_.take();
      call.named.emplace_back(std::move(name), parse_expression());
    } else {
      if (!call.named.empty()) in_.fail("a positional argument follows a named one");
      call.parts.push_back(parse_expression());
    }
    if (!in_.take_op(",")) break;
  }
  in_.expect_op(")");
}

expression_ptr expression_parser::parse_filters(expression_ptr out) {
  while (true) {
    if (in_.take_op("|"))
      out = parse_one_filter(std::move(out));
    else if (in_.is_name("is"))
      out = parse_test(std::move(out));
    else if (in_.is_op("(") && out->kind == expression_kind::filter) {
      auto call = make_expression(expression_kind::call, in_.peek().line);
      call->parts.push_back(std::move(out));
      parse_arguments(*call);
      out = std::move(call);
    } else {
      return out;
    }
  }
}

expression_ptr expression_parser::parse_one_filter(expression_ptr subject) {
  auto out = make_expression(expression_kind::filter, in_.peek().line);
  out->name = in_.expect_name();
  while (in_.take_op(".")) out->name += "." + in_.expect_name();
  out->parts.push_back(std::move(subject));
  if (in_.is_op("(")) parse_arguments(*out);
  return out;
}

expression_ptr expression_parser::parse_test(expression_ptr subject) {
  const std::size_t line = in_.take().line;
  const bool negated = in_.take_name("not");
  auto out = make_expression(expression_kind::test, line);
  out->name = in_.expect_name();
  out->parts.push_back(std::move(subject));
  if (in_.is_op("(")) {
    parse_arguments(*out);
  } else {
    const auto kind = in_.peek().kind;
    const bool value_follows = kind == token_kind::string || kind == token_kind::integer ||
                               kind == token_kind::number || in_.is_op("[") || in_.is_op("{") ||
                               (kind == token_kind::name && !in_.is_name("else") && !in_.is_name("or") &&
                                !in_.is_name("and") && !in_.is_name("if") && !in_.is_name("is") && !in_.is_name("in") &&
                                !in_.is_name("not") && !in_.is_name("recursive"));
    if (value_follows) out->parts.push_back(parse_postfix(parse_primary()));
  }
  if (!negated) return out;
  auto inverse = make_expression(expression_kind::logical_not, line);
  inverse->parts.push_back(std::move(out));
  return inverse;
}

}  // namespace troupe::model::jinja
