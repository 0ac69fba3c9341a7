#include <spdlog/spdlog.h>

#include "actors/stages.hpp"
#include "engine/expert_residency.hpp"

namespace troupe::actors {

struct expert_loader_state {
  static inline const char* name = "expert_loader";
  std::unique_ptr<engine::preload_order> order;
};

namespace {

/// An expert that cannot be loaded ends neither the loader nor the way of the others.
result<void> load(engine::backend& backend, expert_id id) try {
  return backend.load_expert(id);
} catch (const std::exception& failure) {
  return error{error_kind::internal, std::string("the backend threw: ") + failure.what(), "expert_loader"};
}

expert_loader_actor::behavior_type run_expert_loader(expert_loader_actor::stateful_pointer<expert_loader_state> self,
                                                     house_ptr shared) {
  log_exceptions(self);
  const auto& spec = shared->model->spec();
  std::vector<std::uint16_t> sparse;
  for (std::size_t l = 0; l < spec.layers.size(); ++l)
    if (spec.layers[l].sparse) sparse.push_back(static_cast<std::uint16_t>(l));
  self->state.order =
      std::make_unique<engine::preload_order>(std::move(sparse), static_cast<std::uint16_t>(spec.moe.experts));
  if (shared->settings.engine.preload_experts) {
    shared->experts_to_load = self->state.order->total();
    self->send(self, load_atom::value);
  }
  return {
      // One expert a message, so that the loader can be stopped between two.
      [=](load_atom) {
        const auto next = self->state.order->next();
        if (!next) return;
        const ticket_ptr held = enter_admitted(shared->loader_stage);
        held->begin();
        if (auto loaded = load(*shared->backend, *next); !loaded) {
          // The requests that need this expert will fail with this error; the others go on.
          spdlog::error("expert {} of layer {} cannot be loaded: {}", next->index, next->layer,
                        loaded.error().to_string());
          shared->model_measured->expert_load_failures.Increment();
        }
        shared->experts_loaded = self->state.order->done();
        shared->show_residency();
        self->send(self, load_atom::value);
      },
  };
}

}  // namespace

expert_loader_actor spawn_expert_loader(caf::actor_system& system, const house_ptr& shared) {
  return spawn_on_thread(system, run_expert_loader, shared);
}

}  // namespace troupe::actors
