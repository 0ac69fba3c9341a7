#pragma once

#include <memory>

#include "actors/house.hpp"

namespace troupe::actors {

class prompt_maker;

/// The root of the tree: spawns every stage, watches them, and puts a new one in place of one that died, after a
/// backoff that doubles while deaths follow each other. Requests that the dead stage held fail; those in the batch of a
/// dead executor are computed again from their tokens and their clients see a pause only. Monitors are also how it
/// learns that a stage has ended during shutdown.
using supervisor_actor = caf::typed_actor<caf::reacts_to<restart_atom, std::string>, caf::reacts_to<drain_atom>>;

supervisor_actor spawn_supervisor(caf::actor_system& system, const house_ptr& shared,
                                  const std::shared_ptr<prompt_maker>& maker);

}  // namespace troupe::actors
