#include "model/chat/interpreter.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "model/chat/text_methods.hpp"

namespace troupe::model::jinja {
namespace {

/// Text made on the way may add up to this many times what may be alive at once.
constexpr std::size_t turnover = 8;

/// What a value takes by itself: text, and a list's items with their texts, which are copies.
std::size_t size_of(const value& v) {
  if (const auto* t = v.as<text>()) return t->size();
  const auto* list = v.as<list_value>();
  if (list == nullptr) return 0;
  std::size_t bytes = 0;
  for (const value& item : *list->items) bytes += sizeof(value) + (item.is<text>() ? item.as<text>()->size() : 0);
  return bytes;
}

value undefined_of(const std::string& what) { return undefined{what}; }

[[noreturn]] void fail_undefined(const value& v) { throw failure("'" + v.as<undefined>()->name + "' is undefined"); }

std::string object_kind(const value& v) { return "'" + v.type_name() + " object'"; }

std::string format_time(const std::string& pattern, std::chrono::system_clock::time_point now) {
  if (pattern.empty()) return {};
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm local{};
  localtime_r(&seconds, &local);
  std::string out(pattern.size() * 8 + 256, '\0');
  out.resize(std::strftime(out.data(), out.size(), pattern.c_str(), &local));
  return out;
}

value make_range(const arguments& a) {
  const auto number = [&](std::size_t i) -> std::int64_t {
    const auto whole = a.get(i, "").whole();
    if (!whole) throw failure("range needs integers");
    return *whole;
  };
  const std::size_t count = a.positional.size();
  const std::int64_t start = count > 1 ? number(0) : 0;
  const std::int64_t stop = number(count > 1 ? 1 : 0);
  const std::int64_t stride = count > 2 ? number(2) : 1;
  if (stride == 0) throw failure("range() arg 3 must not be zero");
  // The sandbox of the reference allows as many.
  constexpr std::int64_t most = 100'000;
  const double length =
      std::ceil((static_cast<double>(stop) - static_cast<double>(start)) / static_cast<double>(stride));
  if (length > most) throw failure("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
  sequence out;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(length); ++i)
    out.push_back(value::integer(start + i * stride));
  std::string shown = "range(" + std::to_string(start) + ", " + std::to_string(stop);
  if (stride != 1) shown += ", " + std::to_string(stride);
  return list_value{std::make_shared<sequence>(std::move(out)), false, shown + ")"};
}

value make_joiner(const arguments& a) {
  const value given = a.get(0, "sep");
  return value::function(
      "joiner", [used = std::make_shared<bool>(false), separator = given.is<undefined>() ? value(text(", ")) : given](
                    arguments&) { return std::exchange(*used, true) ? separator : value(text()); });
}

value make_cycler(const arguments& a) {
  if (a.positional.empty()) throw failure("at least one item has to be provided");
  auto members = std::make_shared<dictionary>();
  const auto at = std::make_shared<std::size_t>(0);
  // A weak hold: the cycler holds its functions.
  const auto show = [items = a.positional, at, weak = std::weak_ptr<dictionary>(members)] {
    if (const auto of = weak.lock()) of->set(text("current"), items[*at]);
  };
  members->set(text("next"), value::function("next", [items = a.positional, at, show](arguments&) {
                 const value out = items[*at];
                 *at = (*at + 1) % items.size();
                 show();
                 return out;
               }));
  members->set(text("reset"), value::function("reset", [at, show](arguments&) -> value {
                 *at = 0;
                 show();
                 return none{};
               }));
  show();
  return dict_value{std::move(members), true};
}

void refuse_private(const std::string& name) {
  if (name.starts_with('_'))
    throw failure("Chat templates cannot store underscore-prefixed attributes on a namespace, but got '" + name +
                  "'. Please rename the attribute.");
}

value make_dict(const arguments& a, bool is_namespace) {
  auto members = std::make_shared<dictionary>();
  for (const value& from : a.positional)
    if (const auto* d = from.as<dict_value>())
      for (const auto& [key, what] : d->members->members) members->set(key, what);
  for (const auto& [key, what] : a.named) members->set(text(key), what);
  return dict_value{std::move(members), is_namespace};
}

}  // namespace

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

void interpreter::define_globals(std::chrono::system_clock::time_point now) {
  const auto define = [&](const std::string& name, native_function call) {
    globals_->variables[name] = value::function(name, std::move(call));
  };
  define("raise_exception", [](arguments& a) -> value { throw failure(to_text(a.get(0, "message")).bytes()); });
  define("strftime_now",
         [now](arguments& a) -> value { return text(format_time(to_text(a.get(0, "format")).bytes(), now)); });
  define("range", [](arguments& a) { return make_range(a); });
  define("joiner", [](arguments& a) { return make_joiner(a); });
  define("cycler", [](arguments& a) { return make_cycler(a); });
  define("dict", [](arguments& a) { return make_dict(a, false); });
  define("namespace", [](arguments& a) {
    for (const auto& [key, what] : a.named) refuse_private(key);
    return make_dict(a, true);
  });
}

text interpreter::render(const block& program, dictionary variables) {
  for (auto& [name, what] : variables.members) globals_->variables[name.bytes()] = std::move(what);
  text out;
  out_ = &out;
  run(program, std::make_shared<scope>(globals_));
  // Macros hold the scope that holds them: break the ring.
  globals_->variables.clear();
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

// Statements

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
  loop.set(text("previtem"), index > 0 ? (*items)[index - 1] : undefined_of("there is no previous item"));
  loop.set(text("nextitem"), index + 1 < count ? (*items)[index + 1] : undefined_of("there is no next item"));
  loop.set(text("cycle"), value::function("cycle", [index](arguments& a) -> value {
             if (a.positional.empty()) throw failure("no items for cycling given");
             return a.positional[index % a.positional.size()];
           }));
  loop.set(text("changed"), value::function("changed", [last_changed](arguments& a) -> value {
             value now = value::list(a.positional, true);
             const bool differs = !equal(now, *last_changed);
             *last_changed = std::move(now);
             return differs;
           }));
  if (s.flag) {
    loop.set(text("\x01"
                  "recurse"),
             value::function("loop", [this, &s, here, depth](arguments& a) -> value {
               const deeper level(*this, s.line);
               text nested;
               text* const outside = std::exchange(out_, &nested);
               try {
                 loop_over(s, a.get(0, "iterable"), here, depth + 1);
               } catch (...) {
                 out_ = outside;
                 throw;
               }
               out_ = outside;
               return nested;
             }));
  }
  return dict_value{std::make_shared<dictionary>(std::move(loop)), true};
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

text interpreter::capture(const block& body, const scope_ptr& here) {
  text out;
  text* const outside = std::exchange(out_, &out);
  try {
    run(body, here);
  } catch (...) {
    out_ = outside;
    throw;
  }
  out_ = outside;
  return out;
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
        inner->variables[parameter] = undefined_of(parameter);
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

// Expressions

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
      return undefined_of("the inline if-expression evaluated to false and no else section was defined");
  }
  return {};
}

value interpreter::look_up(const std::string& name, const scope_ptr& here) const {
  const value* found = here->find(name);
  return found != nullptr ? *found : undefined_of(name);
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
    return undefined_of(object_kind(object).substr(1, object_kind(object).size() - 2) + "' has no attribute '" +
                        k->bytes());
  }
  return undefined_of(to_text(key).bytes());
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
  if (const auto* d = callee.as<dict_value>())
    if (const value* recurse = d->members->find("\x01"
                                                "recurse"))
      return (*recurse->as<function_value>()->call)(with);
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
