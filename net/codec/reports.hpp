#pragma once

#include <boost/json/object.hpp>
#include <cstdint>

#include "actors/service.hpp"
#include "net/upstream.hpp"

namespace troupe::net {

/// What the server says of itself: the bodies of /v1/models, /health, /ready and /v1/experts.
boost::json::object model_json(const model_facts& model, std::int64_t created);
boost::json::object models_json(const model_facts& model, std::int64_t created);
boost::json::object health_json(const actors::health_report& report);
boost::json::object experts_json(const actors::expert_report& report);

/// Alive: loading or serving, and no stage is stalled.
bool is_alive(const actors::health_report& report);

}  // namespace troupe::net
