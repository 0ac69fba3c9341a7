#include <initializer_list>

#include "model/chat/expression_parser.hpp"

namespace troupe::model::jinja {
namespace {

/// Stands for the text of a block that filters are applied to; the interpreter gives it its value.
expression_ptr block_text(std::size_t line) {
  auto out = make_expression(expression_kind::name, line);
  out->name =
      "\x01"
      "block";
  return out;
}

/// A template's statements.
class parser {
 public:
  explicit parser(std::vector<token> tokens) : in_(std::move(tokens)), expressions_(in_) {}

  block run() {
    block out = parse_block({});
    if (in_.peek().kind != token_kind::end) in_.fail("unexpected tag '" + in_.peek(1).text + "'");
    return out;
  }

 private:
  /// Up to a tag whose name is in `ends`, which is left to the caller, or to the end.
  block parse_block(std::initializer_list<std::string_view> ends) {
    const token_reader::deeper level(in_);
    block out;
    while (in_.peek().kind != token_kind::end) {
      if (in_.peek().kind == token_kind::data) {
        statement s{statement_kind::data, in_.peek().line, in_.take().text, {}, {}, {}, false};
        out.push_back(std::move(s));
      } else if (in_.peek().kind == token_kind::begin_output) {
        statement s{statement_kind::output, in_.take().line, {}, {}, {}, {}, false};
        s.values.push_back(expressions_.parse_tuple());
        if (in_.peek().kind != token_kind::end_output)
          in_.fail("expected the end of the output, got '" + in_.peek().text + "'");
        in_.take();
        out.push_back(std::move(s));
      } else {
        for (const auto end : ends)
          if (in_.is_name(end, 1)) return out;
        const std::string name = in_.peek(1).text;
        if (name.starts_with("end") || name == "else" || name == "elif") return out;
        in_.take();
        parse_tag(out);
      }
    }
    if (ends.size() != 0) in_.fail("unexpected end of template; a tag is not closed");
    return out;
  }

  void close(std::string_view name) {
    if (in_.peek().kind != token_kind::begin_block || !in_.is_name(name, 1))
      in_.fail("expected {% " + std::string(name) + " %}");
    in_.take();
    in_.take();
    in_.end_tag();
  }

  void parse_tag(block& out) {
    const std::size_t line = in_.peek().line;
    const std::string name = in_.expect_name();
    statement s{statement_kind::scope, line, {}, {}, {}, {}, false};
    if (name == "if")
      parse_if(s);
    else if (name == "for")
      parse_for(s);
    else if (name == "set")
      parse_set(s);
    else if (name == "macro")
      parse_macro(s);
    else if (name == "call")
      parse_call_block(s);
    else if (name == "filter")
      parse_filter_block(s);
    else if (name == "with")
      parse_with(s);
    else if (name == "generation")
      parse_simple(s, "endgeneration");
    else if (name == "block")
      parse_named_block(s);
    else if (name == "break" || name == "continue") {
      if (loops_ == 0) throw failure("'" + name + "' outside loop", line);
      s.kind = name == "break" ? statement_kind::break_ : statement_kind::continue_;
      in_.end_tag();
    } else {
      in_.fail("Encountered unknown tag '" + name + "'.");
    }
    out.push_back(std::move(s));
  }

  void parse_if(statement& s) {
    s.kind = statement_kind::if_;
    s.values.push_back(expressions_.parse_tuple());
    in_.end_tag();
    s.blocks.push_back(parse_block({"elif", "else", "endif"}));
    while (in_.is_name("elif", 1)) {
      in_.take();
      in_.take();
      s.values.push_back(expressions_.parse_tuple());
      in_.end_tag();
      s.blocks.push_back(parse_block({"elif", "else", "endif"}));
    }
    if (in_.is_name("else", 1)) {
      in_.take();
      in_.take();
      in_.end_tag();
      s.blocks.push_back(parse_block({"endif"}));
    }
    close("endif");
  }

  target parse_target() {
    const token_reader::deeper level(in_);
    if (!in_.take_op("(")) return {in_.expect_name(), {}};
    target out;
    do {
      if (in_.is_op(")")) break;
      out.parts.push_back(parse_target());
    } while (in_.take_op(","));
    in_.expect_op(")");
    return out;
  }

  std::vector<target> parse_targets(std::string_view until) {
    std::vector<target> out;
    do {
      if (until == "in" && in_.is_name("in")) break;
      out.push_back(parse_target());
    } while (in_.take_op(","));
    if (out.size() == 1 && !out[0].parts.empty()) out = std::vector<target>(std::move(out[0].parts));
    return out;
  }

  /// A body whose breaks and variable arguments are its own.
  void parse_macro_body(statement& s, std::string_view end) {
    const std::size_t loops = std::exchange(loops_, 0);
    const auto around = expressions_.exchange_named({});
    s.blocks.push_back(parse_block({end}));
    const auto named = expressions_.exchange_named(around);
    s.varargs = named.varargs;
    s.kwargs = named.kwargs;
    loops_ = loops;
    close(end);
  }

  void parse_for(statement& s) {
    s.kind = statement_kind::for_;
    s.targets = parse_targets("in");
    if (!in_.take_name("in")) in_.fail("expected 'in'");
    s.values.push_back(expressions_.parse_tuple(false));
    s.values.push_back(in_.take_name("if") ? expressions_.parse_expression() : nullptr);
    s.flag = in_.take_name("recursive");
    in_.end_tag();
    ++loops_;
    s.blocks.push_back(parse_block({"else", "endfor"}));
    --loops_;
    if (in_.is_name("else", 1)) {
      in_.take();
      in_.take();
      in_.end_tag();
      s.blocks.push_back(parse_block({"endfor"}));
    }
    close("endfor");
  }

  void parse_set(statement& s) {
    s.kind = statement_kind::set;
    if (in_.peek().kind == token_kind::name && in_.is_op(".", 1)) {
      s.name = in_.expect_name();
      in_.take();
      s.targets.push_back({in_.expect_name(), {}});
    } else {
      s.targets = parse_targets("=");
    }
    if (in_.take_op("=")) {
      s.values.push_back(expressions_.parse_tuple());
      return in_.end_tag();
    }
    s.kind = statement_kind::set_block;
    // {% set x | filter %}: the filters apply to a placeholder, which the interpreter fills with the block's text.
    s.values.push_back(expressions_.parse_filters(block_text(s.line)));
    in_.end_tag();
    s.blocks.push_back(parse_block({"endset"}));
    close("endset");
  }

  void parse_parameters(statement& s) {
    in_.expect_op("(");
    while (!in_.is_op(")")) {
      s.targets.push_back({in_.expect_name(), {}});
      s.values.push_back(in_.take_op("=") ? expressions_.parse_expression() : nullptr);
      if (!in_.take_op(",")) break;
    }
    in_.expect_op(")");
  }

  void parse_macro(statement& s) {
    s.kind = statement_kind::macro;
    s.name = in_.expect_name();
    parse_parameters(s);
    in_.end_tag();
    parse_macro_body(s, "endmacro");
  }

  void parse_call_block(statement& s) {
    s.kind = statement_kind::call_block;
    if (in_.is_op("(")) parse_parameters(s);
    s.values.push_back(expressions_.parse_expression());
    if (s.values.back()->kind != expression_kind::call) in_.fail("expected a call");
    in_.end_tag();
    parse_macro_body(s, "endcall");
  }

  void parse_filter_block(statement& s) {
    s.kind = statement_kind::filter_block;
    s.values.push_back(expressions_.parse_filters(expressions_.parse_one_filter(block_text(s.line))));
    in_.end_tag();
    s.blocks.push_back(parse_block({"endfilter"}));
    close("endfilter");
  }

  void parse_with(statement& s) {
    s.kind = statement_kind::with_;
    while (in_.peek().kind == token_kind::name) {
      s.targets.push_back({in_.expect_name(), {}});
      in_.expect_op("=");
      s.values.push_back(expressions_.parse_expression());
      if (!in_.take_op(",")) break;
    }
    in_.end_tag();
    s.blocks.push_back(parse_block({"endwith"}));
    close("endwith");
  }

  /// A block that nothing overrides: it stands where it is written.
  void parse_named_block(statement& s) {
    const std::string name = in_.expect_name();
    while (in_.take_name("scoped") || in_.take_name("required")) {
    }
    in_.end_tag();
    s.blocks.push_back(parse_block({"endblock"}));
    if (in_.peek().kind != token_kind::begin_block || !in_.is_name("endblock", 1)) in_.fail("expected {% endblock %}");
    in_.take();
    in_.take();
    in_.take_name(name);
    in_.end_tag();
  }

  void parse_simple(statement& s, std::string_view end) {
    in_.end_tag();
    s.blocks.push_back(parse_block({end}));
    close(end);
  }

  token_reader in_;
  expression_parser expressions_;
  std::size_t loops_ = 0;  ///< Loops around, within the macro.
};

}  // namespace

block parse(std::string_view source) { return parser(tokenize(source)).run(); }

}  // namespace troupe::model::jinja
