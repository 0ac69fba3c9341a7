#pragma once

#include "actors/house.hpp"

namespace troupe::actors {

/// Hands a request to the next stage on its way: takes that stage's credit, notes where the request is from now on, and
/// sends. A full stage refuses: the request is ended as overloaded, with a Retry-After from the rate at which that
/// stage drains. Called by whoever holds the request.
void hand_over(house& shared, const request_ptr& context, hop to);

}  // namespace troupe::actors
