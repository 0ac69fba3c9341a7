#include "model/chat/interpreter.hpp"

#include <algorithm>

namespace troupe::model::jinja {
namespace {

/// Text made on the way may add up to this many times what may be alive at once.
constexpr std::size_t turnover = 8;

}  // namespace

const value* scope::find(std::string_view name) const {
  for (const scope* here = this; here != nullptr; here = here->outer.get())
    if (const auto it = here->variables.find(name); it != here->variables.end()) return &it->second;
  return nullptr;
}

interpreter::interpreter(const template_limits& limits, std::chrono::system_clock::time_point now)
    : limits_(limits), globals_(std::make_shared<scope>(nullptr)) {
  host_.filter = [this](std::string_view name, const value& subject, arguments& more) {
    return filter(name, subject, more);
  };
  host_.test = [this](std::string_view name, const value& subject, arguments& more) {
    return test(name, subject, more);
  };
  host_.item = [this](const value& object, const value& key) { return item(object, key); };
  define_globals(now);
}

interpreter::~interpreter() {
  for (const auto& one : namespaces_) one->members.clear();
}

text interpreter::render(const block& program, dictionary variables) {
  for (auto& [name, what] : variables.members) globals_->variables[name.bytes()] = std::move(what);
  text out;
  out_ = &out;
  run(program, std::make_shared<scope>(globals_));
  return out;
}

void interpreter::step(std::size_t line) {
  if (++steps_ > limits_.steps)
    throw failure("the template takes more than " + std::to_string(limits_.steps) + " steps", line);
}

void interpreter::account(std::size_t bytes, std::size_t line) {
  made_bytes_ += bytes;
  if (bytes > limits_.output_bytes || made_bytes_ > turnover * limits_.memory_bytes)
    throw failure("the template makes too much text", line);
}

void interpreter::write(const text& what, std::size_t line) {
  account(what.size(), line);
  if (out_->size() + what.size() > limits_.output_bytes)
    throw failure("the rendered prompt is longer than " + std::to_string(limits_.output_bytes) + " bytes", line);
  *out_ += what;
}

interpreter::flow interpreter::run(const block& body, const scope_ptr& here) {
  for (const statement& s : body) {
    step(s.line);
    flow went = flow::next;
    try {
      went = run_one(s, here);
    } catch (failure& problem) {
      if (problem.line == 0) problem.line = s.line;
      throw;
    }
    if (went != flow::next) return went;
  }
  return flow::next;
}

interpreter::flow interpreter::run_one(const statement& s, const scope_ptr& here) {
  const deeper level(*this, s.line);
  switch (s.kind) {
    case statement_kind::data:
      write(text(s.name), s.line);
      return flow::next;
    case statement_kind::output:
      write(to_text(evaluate(*s.values[0], here)), s.line);
      return flow::next;
    case statement_kind::if_:
      return run_if(s, here);
    case statement_kind::for_:
      run_for(s, here);
      return flow::next;
    case statement_kind::set:
      run_set(s, evaluate(*s.values[0], here), here);
      return flow::next;
    case statement_kind::set_block:
    case statement_kind::filter_block: {
      const auto inner = std::make_shared<scope>(here);
      inner->variables
          ["\x01"
           "block"] = capture(s.blocks[0], std::make_shared<scope>(here));
      const value what = evaluate(*s.values[0], inner);
      if (s.kind == statement_kind::set_block)
        run_set(s, what, here);
      else
        write(to_text(what), s.line);
      return flow::next;
    }
    case statement_kind::macro:
      here->variables[s.name] = make_macro(s, s.name, here);
      return flow::next;
    case statement_kind::call_block: {
      const auto inner = std::make_shared<scope>(here);
      const expression& called = *s.values.back();
      arguments with = arguments_of(called, here);
      with.named.emplace_back("caller", make_macro(s, "caller", here));
      write(to_text(call_value(evaluate(*called.parts[0], here), with)), s.line);
      return flow::next;
    }
    case statement_kind::with_: {
      const auto inner = std::make_shared<scope>(here);
      for (std::size_t i = 0; i < s.targets.size(); ++i)
        inner->variables[s.targets[i].name] = evaluate(*s.values[i], here);
      return run(s.blocks[0], inner);
    }
    case statement_kind::scope:
      return run(s.blocks[0], std::make_shared<scope>(here));
    case statement_kind::break_:
      return flow::break_loop;
    case statement_kind::continue_:
      return flow::continue_loop;
  }
  return flow::next;
}

interpreter::flow interpreter::run_if(const statement& s, const scope_ptr& here) {
  for (std::size_t i = 0; i < s.values.size(); ++i)
    if (evaluate(*s.values[i], here).truthy()) return run(s.blocks[i], here);
  return s.blocks.size() > s.values.size() ? run(s.blocks.back(), here) : flow::next;
}

void interpreter::run_for(const statement& s, const scope_ptr& here) {
  loop_over(s, evaluate(*s.values[0], here), here, 1);
}

void interpreter::loop_over(const statement& s, const value& over, const scope_ptr& here, std::int64_t depth) {
  const auto items = std::make_shared<sequence>();
  for (value& one : items_of(over)) {
    step(s.line);
    if (s.values[1]) {
      const auto trial = std::make_shared<scope>(here);
      set_targets(s.targets, one, *trial, s.line);
      if (!evaluate(*s.values[1], trial).truthy()) continue;
    }
    items->push_back(std::move(one));
  }
  account(items->size() * sizeof(value), s.line);
  if (items->empty()) {
    if (s.blocks.size() > 1) run(s.blocks[1], std::make_shared<scope>(here));
    return;
  }
  const auto last_changed = std::make_shared<value>();
  for (std::size_t i = 0; i < items->size(); ++i) {
    const auto inner = std::make_shared<scope>(here);
    set_targets(s.targets, (*items)[i], *inner, s.line);
    inner->variables["loop"] = loop_variable(s, items, i, here, depth, last_changed);
    if (run(s.blocks[0], inner) == flow::break_loop) return;
  }
}

/// Its functions hold nothing: a template may keep a loop that is over.
value interpreter::loop_variable(const statement& s, const std::shared_ptr<sequence>& items, std::size_t index,
                                 const scope_ptr& here, std::int64_t depth,
                                 const std::shared_ptr<value>& last_changed) {
  const auto number = [](std::size_t n) { return value::integer(static_cast<std::int64_t>(n)); };
  const std::size_t count = items->size();
  dictionary loop;
  loop.set(text("index"), number(index + 1));
  loop.set(text("index0"), number(index));
  loop.set(text("revindex"), number(count - index));
  loop.set(text("revindex0"), number(count - index - 1));
  loop.set(text("first"), index == 0);
  loop.set(text("last"), index + 1 == count);
  loop.set(text("length"), number(count));
  loop.set(text("depth"), value::integer(depth));
  loop.set(text("depth0"), value::integer(depth - 1));
  loop.set(text("previtem"), index > 0 ? (*items)[index - 1] : undefined{"there is no previous item"});
  loop.set(text("nextitem"), index + 1 < count ? (*items)[index + 1] : undefined{"there is no next item"});
  loop.set(text("cycle"), value::function("cycle", [index](arguments& a) -> value {
             if (a.positional.empty()) throw failure("no items for cycling given");
             return a.positional[index % a.positional.size()];
           }));
  loop.set(text("changed"), value::function("changed", [weak = std::weak_ptr(last_changed)](arguments& a) -> value {
             const auto last = weak.lock();
             if (!last) throw failure("loop.changed is called after its loop");
             value now = value::list(a.positional, true);
             const bool differs = !equal(now, *last);
             *last = std::move(now);
             return differs;
           }));
  value out = value::dict(std::move(loop), true);
  if (!s.flag) return out;
  dict_value recursive = *out.as<dict_value>();
  recursive.call = std::make_shared<const native_function>([this, &s, weak = std::weak_ptr(here), depth](arguments& a) {
    const scope_ptr around = weak.lock();
    if (!around) throw failure("a loop is called after its end");
    const deeper level(*this, s.line);
    return value(captured([&] { loop_over(s, a.get(0, "iterable"), around, depth + 1); }));
  });
  return recursive;
}

void interpreter::set_targets(const std::vector<target>& targets, const value& what, scope& here, std::size_t line) {
  if (targets.size() == 1 && targets[0].parts.empty()) {
    here.variables[targets[0].name] = what;
    return;
  }
  const sequence parts = items_of(what);
  if (parts.size() != targets.size())
    throw failure(std::string(parts.size() > targets.size() ? "too many" : "not enough") +
                      " values to unpack (expected " + std::to_string(targets.size()) + ")",
                  line);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (targets[i].parts.empty())
      here.variables[targets[i].name] = parts[i];
    else
      set_targets(targets[i].parts, parts[i], here, line);
}

void interpreter::run_set(const statement& s, const value& what, const scope_ptr& here) {
  if (s.name.empty()) return set_targets(s.targets, what, *here, s.line);
  const value object = look_up(s.name, here);
  const auto* d = object.as<dict_value>();
  if (d == nullptr || !d->is_namespace) throw failure("cannot assign attribute on non-namespace object", s.line);
  d->members->set(text(s.targets[0].name), what);
}

text interpreter::captured(const std::function<void()>& writes) {
  text out;
  text* const outside = std::exchange(out_, &out);
  try {
    writes();
  } catch (...) {
    out_ = outside;
    throw;
  }
  out_ = outside;
  return out;
}

text interpreter::capture(const block& body, const scope_ptr& here) {
  return captured([&] { run(body, here); });
}

value interpreter::make_macro(const statement& s, std::string name, const scope_ptr& here) {
  // A weak hold: the scope that a macro lives in holds the macro.
  value macro = value::function(name, [this, &s, weak = std::weak_ptr<scope>(here)](arguments& a) -> value {
    const deeper level(*this, s.line);
    const scope_ptr around = weak.lock();
    const auto inner = std::make_shared<scope>(around ? around : globals_);
    if (a.positional.size() > s.targets.size() && !s.varargs)
      throw failure("macro '" + s.name + "' takes not more than " + std::to_string(s.targets.size()) + " argument(s)");
    for (std::size_t i = 0; i < s.targets.size(); ++i) {
      const std::string& parameter = s.targets[i].name;
      if (a.has(i, parameter))
        inner->variables[parameter] = a.get(i, parameter);
      else if (s.values[i])
        inner->variables[parameter] = evaluate(*s.values[i], inner);
      else
        inner->variables[parameter] = undefined{parameter};
    }
    dictionary others;
    for (const auto& [key, what] : a.named) {
      const bool known =
          std::any_of(s.targets.begin(), s.targets.end(), [&](const target& t) { return t.name == key; });
      if (key == "caller")
        inner->variables["caller"] = what;
      else if (!known && s.kwargs)
        others.set(text(key), what);
      else if (!known)
        throw failure("macro '" + s.name + "' takes no keyword argument '" + key + "'");
    }
    if (s.kwargs) inner->variables["kwargs"] = value::dict(std::move(others));
    if (s.varargs) {
      const std::size_t named = std::min(s.targets.size(), a.positional.size());
      inner->variables["varargs"] =
          value::list({a.positional.begin() + static_cast<std::ptrdiff_t>(named), a.positional.end()}, true);
    }
    return capture(s.blocks[0], inner);
  });
  return function_value{macro.as<function_value>()->call, std::move(name), true};
}

}  // namespace troupe::model::jinja
