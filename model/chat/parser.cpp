#include <charconv>

#include "model/chat/syntax.hpp"

namespace troupe::model::jinja {
namespace {

constexpr std::size_t max_depth = 100;

class parser {
 public:
  explicit parser(std::vector<token> tokens) : tokens_(std::move(tokens)) {}

  block run() {
    block out = parse_block({});
    if (peek().kind != token_kind::end) fail("unexpected tag '" + tokens_[at_ + 1].text + "'");
    return out;
  }

 private:
  /// Counts nesting, so that a deep template fails instead of the stack.
  struct deeper {
    explicit deeper(parser& p) : owner(p) {
      if (++owner.depth_ > max_depth) owner.fail("the template is nested too deeply");
    }
    deeper(const deeper&) = delete;
    deeper& operator=(const deeper&) = delete;
    ~deeper() { --owner.depth_; }
    parser& owner;
  };

  const token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  token take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  [[noreturn]] void fail(const std::string& message) const { throw failure(message, peek().line); }

  bool is_op(std::string_view op, std::size_t ahead = 0) const {
    return peek(ahead).kind == token_kind::op && peek(ahead).text == op;
  }
  bool is_name(std::string_view name, std::size_t ahead = 0) const {
    return peek(ahead).kind == token_kind::name && peek(ahead).text == name;
  }
  bool take_op(std::string_view op) { return is_op(op) ? (take(), true) : false; }
  bool take_name(std::string_view name) { return is_name(name) ? (take(), true) : false; }
  void expect_op(std::string_view op) {
    if (!take_op(op)) fail("expected '" + std::string(op) + "', got '" + peek().text + "'");
  }
  std::string expect_name() {
    if (peek().kind != token_kind::name) fail("expected a name, got '" + peek().text + "'");
    return take().text;
  }
  void end_tag() {
    if (peek().kind != token_kind::end_block) fail("expected the end of the tag, got '" + peek().text + "'");
    take();
  }

  expression_ptr make(expression_kind kind, std::size_t line) const {
    auto out = std::make_unique<expression>();
    out->kind = kind;
    out->line = line;
    return out;
  }

  // Statements

  /// Up to a tag whose name is in `ends`, which is left to the caller, or to the end.
  block parse_block(std::initializer_list<std::string_view> ends) {
    const deeper level(*this);
    block out;
    while (peek().kind != token_kind::end) {
      if (peek().kind == token_kind::data) {
        statement s{statement_kind::data, peek().line, take().text, {}, {}, {}, false};
        out.push_back(std::move(s));
      } else if (peek().kind == token_kind::begin_output) {
        statement s{statement_kind::output, take().line, {}, {}, {}, {}, false};
        s.values.push_back(parse_tuple());
        if (peek().kind != token_kind::end_output) fail("expected the end of the output, got '" + peek().text + "'");
        take();
        out.push_back(std::move(s));
      } else {
        for (const auto end : ends)
          if (is_name(end, 1)) return out;
        const std::string name = peek(1).text;
        if (name.starts_with("end") || name == "else" || name == "elif") return out;
        take();
        parse_tag(out);
      }
    }
    if (ends.size() != 0) fail("unexpected end of template; a tag is not closed");
    return out;
  }

  void close(std::string_view name) {
    if (peek().kind != token_kind::begin_block || !is_name(name, 1)) fail("expected {% " + std::string(name) + " %}");
    take();
    take();
    end_tag();
  }

  void parse_tag(block& out) {
    const std::size_t line = peek().line;
    const std::string name = expect_name();
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
      end_tag();
    } else {
      fail("Encountered unknown tag '" + name + "'.");
    }
    out.push_back(std::move(s));
  }

  void parse_if(statement& s) {
    s.kind = statement_kind::if_;
    s.values.push_back(parse_tuple());
    end_tag();
    s.blocks.push_back(parse_block({"elif", "else", "endif"}));
    while (is_name("elif", 1)) {
      take();
      take();
      s.values.push_back(parse_tuple());
      end_tag();
      s.blocks.push_back(parse_block({"elif", "else", "endif"}));
    }
    if (is_name("else", 1)) {
      take();
      take();
      end_tag();
      s.blocks.push_back(parse_block({"endif"}));
    }
    close("endif");
  }

  target parse_target() {
    const deeper level(*this);
    if (!take_op("(")) return {expect_name(), {}};
    target out;
    do {
      if (is_op(")")) break;
      out.parts.push_back(parse_target());
    } while (take_op(","));
    expect_op(")");
    return out;
  }

  std::vector<target> parse_targets(std::string_view until) {
    std::vector<target> out;
    do {
      if (until == "in" && is_name("in")) break;
      out.push_back(parse_target());
    } while (take_op(","));
    if (out.size() == 1 && !out[0].parts.empty()) out = std::vector<target>(std::move(out[0].parts));
    return out;
  }

  /// A body whose breaks and variable arguments are its own.
  void parse_macro_body(statement& s, std::string_view end) {
    const std::size_t loops = std::exchange(loops_, 0);
    const bool varargs = std::exchange(varargs_, false);
    const bool kwargs = std::exchange(kwargs_, false);
    s.blocks.push_back(parse_block({end}));
    s.varargs = std::exchange(varargs_, varargs);
    s.kwargs = std::exchange(kwargs_, kwargs);
    loops_ = loops;
    close(end);
  }

  void parse_for(statement& s) {
    s.kind = statement_kind::for_;
    s.targets = parse_targets("in");
    if (!take_name("in")) fail("expected 'in'");
    s.values.push_back(parse_tuple(false));
    s.values.push_back(take_name("if") ? parse_expression() : nullptr);
    s.flag = take_name("recursive");
    end_tag();
    ++loops_;
    s.blocks.push_back(parse_block({"else", "endfor"}));
    --loops_;
    if (is_name("else", 1)) {
      take();
      take();
      end_tag();
      s.blocks.push_back(parse_block({"endfor"}));
    }
    close("endfor");
  }

  void parse_set(statement& s) {
    s.kind = statement_kind::set;
    if (peek().kind == token_kind::name && is_op(".", 1)) {
      s.name = expect_name();
      take();
      s.targets.push_back({expect_name(), {}});
    } else {
      s.targets = parse_targets("=");
    }
    if (take_op("=")) {
      s.values.push_back(parse_tuple());
      return end_tag();
    }
    s.kind = statement_kind::set_block;
    // {% set x | filter %}: the filters apply to a placeholder, which the interpreter fills with the block's text.
    auto filtered = make(expression_kind::name, s.line);
    filtered->name =
        "\x01"
        "block";
    s.values.push_back(parse_filters(std::move(filtered)));
    end_tag();
    s.blocks.push_back(parse_block({"endset"}));
    close("endset");
  }

  void parse_parameters(statement& s) {
    expect_op("(");
    while (!is_op(")")) {
      s.targets.push_back({expect_name(), {}});
      s.values.push_back(take_op("=") ? parse_expression() : nullptr);
      if (!take_op(",")) break;
    }
    expect_op(")");
  }

  void parse_macro(statement& s) {
    s.kind = statement_kind::macro;
    s.name = expect_name();
    parse_parameters(s);
    end_tag();
    parse_macro_body(s, "endmacro");
  }

  void parse_call_block(statement& s) {
    s.kind = statement_kind::call_block;
    if (is_op("(")) parse_parameters(s);
    s.values.push_back(parse_expression());
    if (s.values.back()->kind != expression_kind::call) fail("expected a call");
    end_tag();
    parse_macro_body(s, "endcall");
  }

  void parse_filter_block(statement& s) {
    s.kind = statement_kind::filter_block;
    auto subject = make(expression_kind::name, s.line);
    subject->name =
        "\x01"
        "block";
    s.values.push_back(parse_filters(parse_one_filter(std::move(subject))));
    end_tag();
    s.blocks.push_back(parse_block({"endfilter"}));
    close("endfilter");
  }

  void parse_with(statement& s) {
    s.kind = statement_kind::with_;
    while (peek().kind == token_kind::name) {
      s.targets.push_back({expect_name(), {}});
      expect_op("=");
      s.values.push_back(parse_expression());
      if (!take_op(",")) break;
    }
    end_tag();
    s.blocks.push_back(parse_block({"endwith"}));
    close("endwith");
  }

  /// A block that nothing overrides: it stands where it is written.
  void parse_named_block(statement& s) {
    const std::string name = expect_name();
    while (take_name("scoped") || take_name("required")) {
    }
    end_tag();
    s.blocks.push_back(parse_block({"endblock"}));
    if (peek().kind != token_kind::begin_block || !is_name("endblock", 1)) fail("expected {% endblock %}");
    take();
    take();
    take_name(name);
    end_tag();
  }

  void parse_simple(statement& s, std::string_view end) {
    end_tag();
    s.blocks.push_back(parse_block({end}));
    close(end);
  }

  // Expressions, loosest first

  bool at_end_of_tuple() const {
    const auto kind = peek().kind;
    return kind == token_kind::end_block || kind == token_kind::end_output || kind == token_kind::end || is_op(")") ||
           is_name("if") || is_name("in") || is_name("recursive") || is_op("=");
  }

  /// An expression, or several with commas between, which make a tuple.
  expression_ptr parse_tuple(bool conditional = true) {
    const std::size_t line = peek().line;
    auto first = conditional ? parse_expression() : parse_or();
    if (!is_op(",")) return first;
    auto out = make(expression_kind::tuple, line);
    out->parts.push_back(std::move(first));
    while (take_op(",")) {
      if (at_end_of_tuple()) break;
      out->parts.push_back(conditional ? parse_expression() : parse_or());
    }
    return out;
  }

  expression_ptr parse_expression() {
    const deeper level(*this);
    auto out = parse_or();
    while (is_name("if")) {
      auto choice = make(expression_kind::conditional, take().line);
      choice->parts.push_back(std::move(out));
      choice->parts.push_back(parse_or());
      choice->parts.push_back(take_name("else") ? parse_expression() : nullptr);
      out = std::move(choice);
    }
    return out;
  }

  expression_ptr join(expression_kind kind, std::string name, std::size_t line, expression_ptr left,
                      expression_ptr right) const {
    auto out = make(kind, line);
    out->name = std::move(name);
    out->parts.push_back(std::move(left));
    out->parts.push_back(std::move(right));
    return out;
  }

  expression_ptr parse_or() {
    auto left = parse_and();
    while (is_name("or")) {
      const std::size_t line = take().line;
      left = join(expression_kind::logical_or, {}, line, std::move(left), parse_and());
    }
    return left;
  }

  expression_ptr parse_and() {
    auto left = parse_not();
    while (is_name("and")) {
      const std::size_t line = take().line;
      left = join(expression_kind::logical_and, {}, line, std::move(left), parse_not());
    }
    return left;
  }

  expression_ptr parse_not() {
    if (!is_name("not")) return parse_compare();
    const deeper level(*this);
    auto out = make(expression_kind::logical_not, take().line);
    out->parts.push_back(parse_not());
    return out;
  }

  std::string comparison() {
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"})
      if (take_op(op)) return std::string(op);
    if (take_name("in")) return "in";
    if (is_name("not") && is_name("in", 1)) {
      take();
      take();
      return "not in";
    }
    return {};
  }

  expression_ptr parse_compare() {
    const std::size_t line = peek().line;
    auto left = parse_sum();
    std::string op = comparison();
    if (op.empty()) return left;
    auto out = make(expression_kind::compare, line);
    out->parts.push_back(std::move(left));
    for (; !op.empty(); op = comparison()) {
      out->operators.push_back(op);
      out->parts.push_back(parse_sum());
    }
    return out;
  }

  expression_ptr parse_sum() {
    auto left = parse_concat();
    while (is_op("+") || is_op("-")) {
      const token op = take();
      left = join(expression_kind::binary, op.text, op.line, std::move(left), parse_concat());
    }
    return left;
  }

  expression_ptr parse_concat() {
    auto left = parse_product();
    while (is_op("~")) {
      const token op = take();
      left = join(expression_kind::binary, op.text, op.line, std::move(left), parse_product());
    }
    return left;
  }

  expression_ptr parse_product() {
    auto left = parse_power();
    while (is_op("*") || is_op("/") || is_op("//") || is_op("%")) {
      const token op = take();
      left = join(expression_kind::binary, op.text, op.line, std::move(left), parse_power());
    }
    return left;
  }

  expression_ptr parse_power() {
    auto left = parse_unary(true);
    while (is_op("**")) {
      const token op = take();
      left = join(expression_kind::binary, op.text, op.line, std::move(left), parse_unary(true));
    }
    return left;
  }

  expression_ptr parse_unary(bool with_filters) {
    const deeper level(*this);
    expression_ptr out;
    if (is_op("-") || is_op("+")) {
      out = make(is_op("-") ? expression_kind::negate : expression_kind::plus, peek().line);
      take();
      out->parts.push_back(parse_unary(false));
    } else {
      out = parse_postfix(parse_primary());
    }
    return with_filters ? parse_filters(std::move(out)) : std::move(out);
  }

  expression_ptr parse_primary() {
    const token t = take();
    auto out = make(expression_kind::constant, t.line);
    switch (t.kind) {
      case token_kind::string: {
        std::string all = t.text;
        while (peek().kind == token_kind::string) all += take().text;
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
          varargs_ = varargs_ || t.text == "varargs";
          kwargs_ = kwargs_ || t.text == "kwargs";
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

  expression_ptr parse_parentheses(std::size_t line) {
    if (take_op(")")) return make(expression_kind::tuple, line);
    auto out = parse_tuple();
    expect_op(")");
    return out;
  }

  expression_ptr parse_items(expression_kind kind, std::string_view end, std::size_t line) {
    auto out = make(kind, line);
    while (!is_op(end)) {
      out->parts.push_back(parse_expression());
      if (!take_op(",")) break;
    }
    expect_op(end);
    return out;
  }

  expression_ptr parse_dict(std::size_t line) {
    auto out = make(expression_kind::dict, line);
    while (!is_op("}")) {
      out->parts.push_back(parse_expression());
      expect_op(":");
      out->parts.push_back(parse_expression());
      if (!take_op(",")) break;
    }
    expect_op("}");
    return out;
  }

  expression_ptr parse_postfix(expression_ptr out) {
    while (true) {
      const std::size_t line = peek().line;
      if (take_op(".")) {
        auto next = make(expression_kind::attribute, line);
        if (peek().kind == token_kind::integer) {
          next->kind = expression_kind::item;
          next->parts.push_back(std::move(out));
          next->parts.push_back(parse_primary());
        } else {
          next->name = expect_name();
          next->parts.push_back(std::move(out));
        }
        out = std::move(next);
      } else if (take_op("[")) {
        out = parse_subscript(std::move(out), line);
      } else if (is_op("(")) {
        auto next = make(expression_kind::call, line);
        next->parts.push_back(std::move(out));
        parse_arguments(*next);
        out = std::move(next);
      } else {
        return out;
      }
    }
  }

  expression_ptr parse_subscript(expression_ptr subject, std::size_t line) {
    expression_ptr parts[3];
    std::size_t count = 0;
    bool sliced = false;
    while (!is_op("]")) {
      if (take_op(":")) {
        sliced = true;
        if (++count > 2) fail("a slice has at most three parts");
      } else {
        if (parts[count]) fail("expected ']'");
        parts[count] = parse_expression();
      }
    }
    expect_op("]");
    auto out = make(sliced ? expression_kind::slice : expression_kind::item, line);
    out->parts.push_back(std::move(subject));
    if (!sliced && !parts[0]) fail("a subscript is empty");
    for (std::size_t i = 0; i < (sliced ? 3U : 1U); ++i) out->parts.push_back(std::move(parts[i]));
    return out;
  }

  void parse_arguments(expression& call) {
    expect_op("(");
    while (!is_op(")")) {
      if (peek().kind == token_kind::name && is_op("=", 1)) {
        std::string name = take().text;
        take();
        call.named.emplace_back(std::move(name), parse_expression());
      } else {
        if (!call.named.empty()) fail("a positional argument follows a named one");
        call.parts.push_back(parse_expression());
      }
      if (!take_op(",")) break;
    }
    expect_op(")");
  }

  /// `| filter` and `is test`, as often as they come.
  expression_ptr parse_filters(expression_ptr out) {
    while (true) {
      if (take_op("|"))
        out = parse_one_filter(std::move(out));
      else if (is_name("is"))
        out = parse_test(std::move(out));
      else if (is_op("(") && out->kind == expression_kind::filter) {
        auto call = make(expression_kind::call, peek().line);
        call->parts.push_back(std::move(out));
        parse_arguments(*call);
        out = std::move(call);
      } else {
        return out;
      }
    }
  }

  expression_ptr parse_one_filter(expression_ptr subject) {
    auto out = make(expression_kind::filter, peek().line);
    out->name = expect_name();
    while (take_op(".")) out->name += "." + expect_name();
    out->parts.push_back(std::move(subject));
    if (is_op("(")) parse_arguments(*out);
    return out;
  }

  expression_ptr parse_test(expression_ptr subject) {
    const std::size_t line = take().line;
    const bool negated = take_name("not");
    auto out = make(expression_kind::test, line);
    out->name = expect_name();
    out->parts.push_back(std::move(subject));
    if (is_op("(")) {
      parse_arguments(*out);
    } else {
      const auto kind = peek().kind;
      const bool value_follows =
          kind == token_kind::string || kind == token_kind::integer || kind == token_kind::number || is_op("[") ||
          is_op("{") ||
          (kind == token_kind::name && !is_name("else") && !is_name("or") && !is_name("and") && !is_name("if") &&
           !is_name("is") && !is_name("in") && !is_name("not") && !is_name("recursive"));
      if (value_follows) out->parts.push_back(parse_postfix(parse_primary()));
    }
    if (!negated) return out;
    auto inverse = make(expression_kind::logical_not, line);
    inverse->parts.push_back(std::move(out));
    return inverse;
  }

  std::vector<token> tokens_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::size_t loops_ = 0;  ///< Loops around, within the macro.
  bool varargs_ = false;   ///< The macro's body has named them.
  bool kwargs_ = false;
};

}  // namespace

block parse(std::string_view source) { return parser(tokenize(source)).run(); }

}  // namespace troupe::model::jinja
