#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "model/chat/token_reader.hpp"

namespace troupe::model::jinja {

expression_ptr make_expression(expression_kind kind, std::size_t line);

/// Makes the trees of a template's expressions by recursive descent, one function a level of precedence.
class expression_parser {
 public:
  /// Names that were read; a macro that uses them takes arguments for which it has no parameter.
  struct catch_alls {
    bool varargs = false;
    bool kwargs = false;
  };

  /// Reads from `in`, which must outlive it.
  explicit expression_parser(token_reader& in) : in_(in) {}

  /// An expression, or several with commas between, which make a tuple. `conditional`: may hold `a if b else c`.
  expression_ptr parse_tuple(bool conditional = true);
  expression_ptr parse_expression();
  /// `| filter` and `is test`, as often as they come, applied to `subject`.
  expression_ptr parse_filters(expression_ptr subject);
  /// The filter whose name is next.
  expression_ptr parse_one_filter(expression_ptr subject);

  /// What was named since the last call.
  catch_alls exchange_named(catch_alls next) { return std::exchange(named_, next); }

 private:
  bool at_end_of_tuple() const;

  // Loosest first.
  expression_ptr parse_or();
  expression_ptr parse_and();
  expression_ptr parse_not();
  expression_ptr parse_compare();
  expression_ptr parse_sum() { return parse_chain({"+", "-"}, &expression_parser::parse_concat); }
  expression_ptr parse_concat() { return parse_chain({"~"}, &expression_parser::parse_product); }
  expression_ptr parse_product() { return parse_chain({"*", "/", "//", "%"}, &expression_parser::parse_power); }
  expression_ptr parse_power() { return parse_chain({"**"}, &expression_parser::parse_signed); }
  expression_ptr parse_signed() { return parse_unary(true); }
  expression_ptr parse_unary(bool with_filters);
  expression_ptr parse_postfix(expression_ptr subject);
  expression_ptr parse_primary();

  /// Operands of the next tighter level, joined from left to right.
  expression_ptr parse_chain(std::initializer_list<std::string_view> operators,
                             expression_ptr (expression_parser::*operand)());
  std::string comparison();
  expression_ptr parse_parentheses(std::size_t line);
  expression_ptr parse_items(expression_kind kind, std::string_view end, std::size_t line);
  expression_ptr parse_dict(std::size_t line);
  expression_ptr parse_subscript(expression_ptr subject, std::size_t line);
  void parse_arguments(expression& call);
  expression_ptr parse_test(expression_ptr subject);

  token_reader& in_;
  catch_alls named_;
};

}  // namespace troupe::model::jinja
