// The functions that every template can call.
#include <cmath>
#include <ctime>

#include "model/chat/interpreter.hpp"

namespace troupe::model::jinja {
namespace {

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
      "joiner", [used = std::make_shared<bool>(false), separator = given.is<undefined>() ? text(", ") : to_text(given)](
                    arguments&) { return value(std::exchange(*used, true) ? separator : text()); });
}

value make_cycler(const arguments& a) {
  if (a.positional.empty()) throw failure("at least one item has to be provided");
  auto members = std::make_shared<dictionary>();
  dict_value cycler{members, true};
  for (const value& item : a.positional) cycler.size.hold(item);
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
  return cycler;
}

void refuse_private(const std::string& name) {
  if (name.starts_with('_'))
    throw failure("Chat templates cannot store underscore-prefixed attributes on a namespace, but got '" + name +
                  "'. Please rename the attribute.");
}

dictionary make_members(const arguments& a) {
  dictionary members;
  for (const value& from : a.positional)
    if (const auto* d = from.as<dict_value>())
      for (const auto& [key, what] : d->members->members) members.set(key, what);
  for (const auto& [key, what] : a.named) members.set(text(key), what);
  return members;
}

}  // namespace

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
  define("dict", [](arguments& a) { return value::dict(make_members(a)); });
  define("namespace", [this](arguments& a) -> value {
    for (const auto& [key, what] : a.named) refuse_private(key);
    account(sizeof(dictionary), 0);
    return dict_value{namespaces_.emplace_back(std::make_shared<dictionary>(make_members(a))), true};
  });
}

}  // namespace troupe::model::jinja
