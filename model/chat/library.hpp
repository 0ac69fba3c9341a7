#pragma once

#include <string_view>

#include "model/chat/value.hpp"

/// What templates can call: jinja2's filters and tests, and the methods of Python's strings, lists and dictionaries, as
/// far as chat templates use them. All are pure but `map` and its kin, which call back through `host`.
namespace troupe::model::jinja {

/// What filters need of the interpreter that runs them.
struct host {
  std::function<value(std::string_view name, const value& subject, arguments& more)> filter;
  std::function<bool(std::string_view name, const value& subject, arguments& more)> test;
  std::function<value(const value& object, const value& key)>
      item;  ///< object[key] as `attribute=` arguments look it up.
};

/// Nothing when there is no such filter.
std::optional<value> apply_filter(std::string_view name, const value& subject, arguments& more, const host& runs);
std::optional<bool> apply_test(std::string_view name, const value& subject, arguments& more);
bool is_filter(std::string_view name);
bool is_test(std::string_view name);
/// A bound method, or nothing.
std::optional<value> method_of(const value& object, std::string_view name);

}  // namespace troupe::model::jinja
