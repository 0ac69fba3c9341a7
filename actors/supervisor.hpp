#pragma once

#include <memory>

#include "actors/house.hpp"

namespace troupe::actors {

class prompt_maker;

/// The root of the tree: spawns every stage, watches them, and puts a new one in place of one that died, after a
/// backoff that doubles while deaths follow each other. Then the gateway hands over again what the dead stage held, and
/// clients see a pause only. `stop` ends all stages, and the supervisor with them.
using supervisor_actor = caf::typed_actor<caf::reacts_to<restart_atom, std::string>, caf::reacts_to<stop_atom>>;

supervisor_actor spawn_supervisor(caf::actor_system& system, const house_ptr& shared,
                                  const std::shared_ptr<prompt_maker>& maker);

}  // namespace troupe::actors
