#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "model/chat/chat_template.hpp"
#include "model/chat/library.hpp"
#include "model/chat/syntax.hpp"

namespace troupe::model::jinja {

/// Variables by name; a scope sees those around it.
struct scope {
  explicit scope(std::shared_ptr<scope> around) : outer(std::move(around)) {}
  std::map<std::string, value, std::less<>> variables;
  std::shared_ptr<scope> outer;

  const value* find(std::string_view name) const;
};
using scope_ptr = std::shared_ptr<scope>;

/// Runs a syntax tree within limits. Made for one rendering; throws `failure`.
class interpreter {
 public:
  interpreter(const template_limits& limits, std::chrono::system_clock::time_point now);

  ~interpreter();
  interpreter(const interpreter&) = delete;
  interpreter& operator=(const interpreter&) = delete;

  text render(const block& program, dictionary variables);

 private:
  enum class flow { next, break_loop, continue_loop };
  /// Counts nesting while it lives.
  class deeper;

  void step(std::size_t line);
  void account(std::size_t bytes, std::size_t line);
  void write(const text& what, std::size_t line);

  flow run(const block& body, const scope_ptr& here);
  flow run_one(const statement& s, const scope_ptr& here);
  flow run_if(const statement& s, const scope_ptr& here);
  void run_for(const statement& s, const scope_ptr& here);
  void loop_over(const statement& s, const value& over, const scope_ptr& here, std::int64_t depth);
  value loop_variable(const statement& s, const std::shared_ptr<sequence>& items, std::size_t index,
                      const scope_ptr& here, std::int64_t depth, const std::shared_ptr<value>& last_changed);
  void set_targets(const std::vector<target>& targets, const value& what, scope& here, std::size_t line);
  void run_set(const statement& s, const value& what, const scope_ptr& here);
  text captured(const std::function<void()>& writes);
  text capture(const block& body, const scope_ptr& here);
  value make_macro(const statement& s, std::string name, const scope_ptr& here);

  value evaluate(const expression& e, const scope_ptr& here);
  value evaluate_inner(const expression& e, const scope_ptr& here);
  value look_up(const std::string& name, const scope_ptr& here) const;
  value attribute(const value& object, const std::string& name);
  value item(const value& object, const value& key);
  value slice(const expression& e, const scope_ptr& here);
  value binary(const expression& e, const scope_ptr& here);
  value compare_chain(const expression& e, const scope_ptr& here);
  value call(const expression& e, const scope_ptr& here);
  value call_value(const value& callee, arguments& with);
  arguments arguments_of(const expression& e, const scope_ptr& here);
  value filter(std::string_view name, const value& subject, arguments& more);
  bool test(std::string_view name, const value& subject, arguments& more);
  void define_globals(std::chrono::system_clock::time_point now);

  template_limits limits_;
  std::size_t steps_ = 0;
  std::size_t made_bytes_ = 0;
  std::size_t depth_ = 0;
  text* out_ = nullptr;
  scope_ptr globals_;
  std::vector<std::shared_ptr<dictionary>> namespaces_;  ///< All: a chain of them is freed link by link.
  host host_;
};

class interpreter::deeper {
 public:
  deeper(interpreter& runs, std::size_t line) : runs_(runs) {
    if (++runs_.depth_ > runs_.limits_.depth) {
      --runs_.depth_;
      throw failure("the template calls itself or nests too deeply", line);
    }
  }
  deeper(const deeper&) = delete;
  deeper& operator=(const deeper&) = delete;
  ~deeper() { --runs_.depth_; }

 private:
  interpreter& runs_;
};

}  // namespace troupe::model::jinja
