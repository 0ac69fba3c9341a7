#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

/// Expected failures are values: a function that can fail returns `result<T>`, never throws for bad input.
///
/// An error says what kind of failure it is (for the exit code or HTTP status), what happened in words that tell a
/// person what to do, and where: a file and offset, a YAML line and key, or a JSON field.
namespace troupe {

enum class error_kind {
  invalid,            ///< The caller's input is wrong: bad flag, bad JSON field, bad configuration.
  not_found,          ///< A named thing does not exist: model, file, route.
  corrupt,            ///< A file breaks the rules of its format.
  unsupported,        ///< Well-formed, but this build or machine cannot do it.
  io,                 ///< The operating system refused: open, read, map, bind.
  too_large,          ///< Over a configured limit.
  overloaded,         ///< A bounded mailbox or memory is full; try again later.
  unavailable,        ///< Loading, draining or stopped: cannot be served now.
  deadline_exceeded,  ///< Time ran out; `place` names the stage.
  cancelled,          ///< The client went away or cancelled.
  internal,           ///< A broken invariant that was contained.
};

std::string_view to_string(error_kind kind);

struct error {
  error_kind kind = error_kind::internal;
  std::string message;  ///< What went wrong and what to do, one sentence, no trailing newline.
  std::string place;    ///< Where: "model.safetensors: header, byte 8", "troupe.yaml:12 engine.max_batch_size",
                        ///< "messages[2].role".

  /// "place: message", or the message alone where there is no place.
  std::string to_string() const;
};

/// A value or an error. Test with `if (!r)`, read with `*r` and `r->`; `r.error()` only when the test failed.
template <class T>
class [[nodiscard]] result {
 public:
  using value_type = T;

  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: conversion is the point
  result(troupe::error failure) : state_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT

  explicit operator bool() const { return state_.index() == 0; }
  bool has_value() const { return state_.index() == 0; }

  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  troupe::error& error() & { return *std::get_if<1>(&state_); }
  const troupe::error& error() const& { return *std::get_if<1>(&state_); }
  troupe::error&& error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, troupe::error> state_;
};

/// Success without a value, or an error: `return {};` is success.
template <>
class [[nodiscard]] result<void> {
 public:
  using value_type = void;

  result() = default;
  result(troupe::error failure) : failure_(std::move(failure)) {}  // NOLINT

  explicit operator bool() const { return !failure_; }
  bool has_value() const { return !failure_; }
  troupe::error& error() & { return *failure_; }
  const troupe::error& error() const& { return *failure_; }
  troupe::error&& error() && { return std::move(*failure_); }

 private:
  std::optional<troupe::error> failure_;
};

}  // namespace troupe
