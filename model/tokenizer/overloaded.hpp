#pragma once

namespace troupe::model {

/// One callable out of several, for std::visit.
template <class... Callables>
struct overloaded : Callables... {
  using Callables::operator()...;
};
template <class... Callables>
overloaded(Callables...) -> overloaded<Callables...>;

}  // namespace troupe::model
