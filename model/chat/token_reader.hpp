#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "model/chat/syntax.hpp"

namespace troupe::model::jinja {

/// A template's tokens, read from the first to the last. What does not fit fails with its line.
class token_reader {
 public:
  static constexpr std::size_t max_depth = 100;

  explicit token_reader(std::vector<token> tokens) : tokens_(std::move(tokens)) {}

  /// Counts nesting, so that a deep template fails instead of the stack.
  struct deeper {
    explicit deeper(token_reader& p) : owner(p) {
      if (++owner.depth_ > max_depth) owner.fail("the template is nested too deeply");
    }
    deeper(const deeper&) = delete;
    deeper& operator=(const deeper&) = delete;
    ~deeper() { --owner.depth_; }
    token_reader& owner;
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

 private:
  std::vector<token> tokens_;  ///< The last is `end`, which is never passed.
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
};

}  // namespace troupe::model::jinja
