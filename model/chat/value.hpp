#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// The values of a template: Python's, as far as chat templates need them.
namespace troupe::model::jinja {

/// Why a template could not be parsed or rendered. Thrown inside, turned into an `error` at the edge.
struct failure : std::runtime_error {
  failure(const std::string& message, std::size_t at) : std::runtime_error(message), line(at) {}
  explicit failure(const std::string& message) : std::runtime_error(message) {}
  std::size_t line = 0;  ///< 0: not known yet.
};

/// Text that knows byte for byte who wrote it: the template, or a client. Growing beyond `max_bytes` fails.
class text {
 public:
  static constexpr std::size_t max_bytes = 64 << 20;

  text() = default;
  text(std::string_view bytes, bool from_user = false)
      : bytes_(bytes), users_(bytes.size(), from_user ? '\1' : '\0') {}  // NOLINT

  const std::string& bytes() const { return bytes_; }
  bool from_user(std::size_t at) const { return users_[at] != '\0'; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  text& operator+=(const text& more);
  void append(std::string_view bytes, bool from_user);
  text substr(std::size_t begin, std::size_t length = std::string::npos) const;
  /// New bytes in place of these, one for one or not: written by a user if any of these was.
  text with_bytes(std::string bytes) const;
  bool any_user() const { return users_.find('\1') != std::string::npos; }

 private:
  std::string bytes_;
  std::string users_;  ///< One flag a byte.
};

class value;
using sequence = std::vector<value>;

/// A dictionary in order of insertion; keys are strings, which is all that JSON and templates make.
struct dictionary {
  std::vector<std::pair<text, value>> members;
  const value* find(std::string_view key) const;
  void set(const text& key, value what);
};

/// How large a value is with all that it holds; what it holds twice counts twice. Bounded when lists and dictionaries
/// are made, so that walking or freeing one can exhaust neither the stack nor the day.
struct extent {
  static constexpr std::uint32_t most_nesting = 200;
  static constexpr std::uint64_t most_values = 16 << 20;
  std::uint32_t nesting = 0;
  std::uint64_t values = 1;

  void hold(const value& inside);  ///< Fails beyond the bounds.
};

struct arguments;
using native_function = std::function<value(arguments&)>;

struct undefined {
  std::string name;
};
struct none {};
struct list_value {
  std::shared_ptr<sequence> items;
  bool tuple = false;
  std::string shown = {};  ///< How it prints where not as a list: "dict_keys" around one, or all of "range(0, 3)".
  extent size = {1, 1};
};
struct dict_value {
  std::shared_ptr<dictionary> members;
  /// An object with attributes: a namespace, a loop or a cycler; equal only to itself.
  bool is_namespace = false;
  std::shared_ptr<const native_function> call = {};  ///< What calling it does: a recursive loop's.
  /// A namespace changes and may hold itself: it counts as nothing, and the interpreter frees it in the end.
  extent size = {1, 1};
};
struct function_value {
  std::shared_ptr<const native_function> call;
  std::string name;
  bool macro = false;
};

class value {
 public:
  using storage =
      std::variant<undefined, none, bool, std::int64_t, double, text, list_value, dict_value, function_value>;

  value() : data_(undefined{}) {}
  template <class T>
  requires std::is_constructible_v<storage, T&&> &&(!std::is_same_v<std::remove_cvref_t<T>, value>)value(T&& data)
      : data_(std::forward<T>(data)) {}  // NOLINT: values are made of their contents

  static value list(sequence items, bool tuple = false);
  static value dict(dictionary members = {}, bool is_namespace = false);
  static value integer(std::int64_t number) { return storage(number); }
  static value function(std::string name, native_function call) {
    return function_value{std::make_shared<const native_function>(std::move(call)), std::move(name), false};
  }

  template <class T>
  const T* as() const {
    return std::get_if<T>(&data_);
  }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  const storage& data() const { return data_; }

  bool truthy() const;
  /// Numbers, booleans among them; nothing for others.
  std::optional<double> number() const;
  std::optional<std::int64_t> whole() const;
  std::string type_name() const;  ///< As Python calls it.

 private:
  value(storage data) : data_(std::move(data)) {}  // NOLINT
  storage data_;
};

/// What a function was called with.
struct arguments {
  std::vector<value> positional;
  std::vector<std::pair<std::string, value>> named;

  /// The argument at `index`, or named so; undefined when absent.
  value get(std::size_t index, std::string_view name) const;
  bool has(std::size_t index, std::string_view name) const;
};

bool equal(const value& a, const value& b);
/// -1, 0 or 1; fails for values that Python does not order.
int compare(const value& a, const value& b);
bool contains(const value& container, const value& item);
value add(const value& a, const value& b);  ///< Python's +.

text to_text(const value& v);  ///< Python's str().
text repr(const value& v);     ///< Python's repr().
std::string float_text(double number);
sequence items_of(const value& v);  ///< What a loop over it sees; fails for what cannot be iterated.
std::size_t length_of(const value& v);

struct json_style {
  bool ascii = false;
  std::optional<std::size_t> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
text to_json(const value& v, const json_style& style, std::size_t level = 0);

/// A JSON value as the template sees it; `from_user` marks its strings.
value from_json(const boost::json::value& json, bool from_user);

// UTF-8 by characters.
std::size_t character_count(std::string_view bytes);
std::size_t character_offset(std::string_view bytes, std::size_t index);

}  // namespace troupe::model::jinja
