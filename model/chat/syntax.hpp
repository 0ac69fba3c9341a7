#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/chat/value.hpp"

/// The syntax tree of a template, and how it is made from text.
namespace troupe::model::jinja {

struct expression;
using expression_ptr = std::unique_ptr<expression>;

enum class expression_kind {
  constant,
  name,
  list,
  tuple,
  dict,  // dict: keys and values alternate in `parts`
  attribute,
  item,
  slice,  // x.name; x[i]; x[a:b:c], absent parts null
  call,
  filter,
  test,  // parts[0] is the callee or the subject, the others its arguments
  negate,
  plus,
  logical_not,
  logical_and,
  logical_or,
  binary,       // `name` is the operator
  compare,      // parts[0] op parts[1] op ..., `operators`
  conditional,  // parts: then, condition, else or null
};

struct expression {
  expression_kind kind;
  std::size_t line = 0;
  std::string name;
  value constant;
  std::vector<expression_ptr> parts;
  std::vector<std::pair<std::string, expression_ptr>> named;  ///< Keyword arguments.
  std::vector<std::string> operators;
};

/// What a loop or an assignment gives a value to: a variable, or several that it is unpacked into.
struct target {
  std::string name;
  std::vector<target> parts;  ///< Empty: a variable.
};

struct statement;
using block = std::vector<statement>;

enum class statement_kind {
  data,
  output,
  if_,
  for_,
  set,
  set_block,
  macro,
  call_block,
  filter_block,
  with_,
  scope,
  break_,
  continue_
};

struct statement {
  statement_kind kind;
  std::size_t line = 0;
  std::string name;             ///< Data's text; a macro's name; the namespace of `set ns.x`.
  std::vector<target> targets;  ///< Of for and set; parameters of a macro or call block.
  std::vector<expression_ptr>
      values;  ///< Conditions of if; iterable and filter of for; set's value; defaults of a macro (null: none).
  std::vector<block> blocks;             ///< Branches of if (one more than values: else); body and else of for; bodies.
  bool flag = false;                     ///< for: recursive.
  bool varargs = false, kwargs = false;  ///< A macro's body names them, so that it takes what has no parameter.
};

/// Fails with the line of what is wrong.
block parse(std::string_view source);

/// Lexing.
enum class token_kind {
  data,
  begin_output,
  end_output,
  begin_block,
  end_block,
  name,
  integer,
  number,
  string,
  op,
  end
};
struct token {
  token_kind kind;
  std::string text;
  std::size_t line;
};
/// Cuts a template with jinja2's trim_blocks and lstrip_blocks on.
std::vector<token> tokenize(std::string_view source);

}  // namespace troupe::model::jinja
