#include "actors/hand_over.hpp"

namespace troupe::actors {
namespace {

template <class Handle, class Atom>
void send(const post<Handle>& to, whereabouts at, Atom what, const request_ptr& context, ticket_ptr entered) {
  at.life = to.life;
  context->at = at;
  caf::anon_send(to.handle, what, context, std::move(entered));
}

const std::shared_ptr<stage>& stage_of(const house& shared, const whereabouts& to) {
  switch (to.stage) {
    case hop::gateway:
      return shared.gateway_stage;
    case hop::admission:
      return shared.admission_stage;
    case hop::memory_cache:
      return shared.cache_stage;
    case hop::preparer:
      return shared.preparer_stages[to.preparer];
    default:
      return shared.collector_stage;
  }
}

}  // namespace

void hand_over(house& shared, const request_ptr& context, hop to) {
  whereabouts at{.stage = to};
  if (to == hop::preparer) at.preparer = shared.next_preparer();
  const auto& next = stage_of(shared, at);
  const bool admitted = to != hop::gateway && to != hop::admission;
  auto entered = admitted ? enter_admitted(next) : enter(next);
  if (!entered)
    return context->fail({error_kind::overloaded, "the mailbox of the next stage is full", next->name()},
                         next->retry_after());
  switch (to) {
    case hop::gateway:
      return send(shared.at(&house::gateway), at, submit_atom::value, context, std::move(entered));
    case hop::admission:
      return send(shared.at(&house::admission), at, enter_atom::value, context, std::move(entered));
    case hop::memory_cache:
      return send(shared.at(&house::memory_cache), at, look_up_atom::value, context, std::move(entered));
    case hop::preparer:
      return send(shared.preparer(at.preparer), at, prepare_atom::value, context, std::move(entered));
    case hop::batch_collector:
      at.dispatcher_life = static_cast<std::uint16_t>(shared.at(&house::dispatcher).life);
      // A dispatcher that does not know its text begins with its first event; one that knows it goes on.
      if (at.dispatcher_life != context->at.load().dispatcher_life) context->begin_again();
      return send(shared.at(&house::batch_collector), at, add_atom::value, context, std::move(entered));
    case hop::none:
    case hop::dispatcher:
      break;
  }
}

}  // namespace troupe::actors
