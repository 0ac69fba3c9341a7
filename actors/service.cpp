#include "actors/service.hpp"

#include <spdlog/spdlog.h>

#include <caf/all.hpp>

#include <condition_variable>
#include <thread>

#include "actors/hand_over.hpp"
#include "actors/prompt_maker.hpp"
#include "actors/stages.hpp"
#include "actors/supervisor.hpp"

namespace troupe::actors {
namespace {

/// For the actors that only pass messages on: what takes long (preparers, executor, expert loader) has its own threads.
constexpr std::size_t scheduler_threads = 2;

struct actor_config : caf::actor_system_config {
  actor_config() {
    set("scheduler.max-threads", scheduler_threads);
    set("logger.console", caf::atom("none"));
  }
};

steady_time real_clock() { return std::chrono::steady_clock::now(); }

}  // namespace

std::string_view to_string(finish_reason reason) { return reason == finish_reason::stop ? "stop" : "length"; }

struct service::parts {
  explicit parts(const config::settings& configured)
      : shared(std::make_shared<house>(configured, real_clock)), system(config) {}

  void load(loader make);
  void start_actors(loaded_model loaded);
  bool serving() const { return state.load() == health_report::state_kind::ready; }
  const std::string& name_of(const model::opened_model& opened) const;
  void request_ended(request_context& context);
  void prepare(const text_call_ptr& call);

  house_ptr shared;
  actor_config config;
  caf::actor_system system;
  supervisor_actor supervisor;
  std::shared_ptr<prompt_maker> maker;

  std::atomic<health_report::state_kind> state{health_report::state_kind::loading};
  std::atomic<bool> started{false};  ///< What `start_actors` sets in `shared` may be read.
  std::mutex guard;
  std::condition_variable changed;  ///< `state` left loading, or a request ended.
  std::optional<error> load_failure;
  std::thread loading;
  bool stopped = false;
};

const std::string& service::parts::name_of(const model::opened_model& opened) const {
  const auto& configured = shared->settings.model.name;
  return configured.empty() ? opened.name() : configured;
}

void service::parts::start_actors(loaded_model loaded) {
  const auto& limit = shared->settings.model.max_context;
  shared->model = std::move(loaded.model);
  shared->backend = std::move(loaded.backend);
  shared->precision = loaded.precision.empty() ? shared->settings.model.precision : std::move(loaded.precision);
  shared->model_measured = std::make_unique<model_metrics>(shared->measured, name_of(*shared->model));
  const std::uint32_t own = shared->model->spec().max_context;
  shared->max_context = limit == 0 ? own : std::min(limit, own);
  // What the KV cache cannot hold even for a single sequence is no context that can be promised.
  const std::uint64_t held = std::uint64_t{shared->backend->page_count()} * engine::page_tokens;
  if (held < shared->max_context) {
    spdlog::warn("the KV cache holds {} tokens: the context is cut from {} to that; raise --kv-cache-memory for more",
                 held, shared->max_context);
    shared->max_context = static_cast<std::uint32_t>(held);
  }
  maker = std::make_shared<prompt_maker>(shared->model->text(), shared->model->chat(), shared->model->spec().vocab,
                                         shared->max_context, shared->settings.limits.prompt_memo);
  supervisor = spawn_supervisor(system, shared, maker);
  shared->stages_started.wait();
  started = true;
}

void service::parts::load(loader make) {
  result<loaded_model> loaded = error{error_kind::internal, "the loader did not run", {}};
  try {
    loaded = make();
    if (loaded && state.load() == health_report::state_kind::loading) {
      start_actors(*std::move(loaded));
      if (shared->start_failure) loaded = *shared->start_failure;
    }
  } catch (const std::bad_alloc&) {
    loaded =
        error{error_kind::overloaded,
              "not enough memory to load the model: free some, or choose a smaller --precision or --kv-cache-memory",
              {}};
  } catch (const std::exception& failure) {
    loaded = error{error_kind::internal, std::string("loading failed: ") + failure.what(), {}};
  }
  const std::lock_guard lock(guard);
  if (!loaded) load_failure = std::move(loaded).error();
  auto expected = health_report::state_kind::loading;  // a stop may have come meanwhile
  state.compare_exchange_strong(expected,
                                load_failure ? health_report::state_kind::failed : health_report::state_kind::ready);
  changed.notify_all();
}

void service::parts::request_ended(request_context& context) {
  auto& measured = shared->measured;
  if (const auto& failure = context.failure) {
    measured.request_failure.Add({{"kind", std::string(to_string(failure->kind))}}).Increment();
    const bool ours = failure->kind == error_kind::internal || failure->kind == error_kind::corrupt ||
                      failure->kind == error_kind::io;
    if (ours) spdlog::error("request {} failed: {}", context.request.external_id, failure->to_string());
  }
  shared->model_measured->request_latency.Observe(
      std::chrono::duration<double>(shared->clock() - context.arrived).count());
  const std::lock_guard lock(guard);
  shared->requests.remove(context);
  changed.notify_all();
}

std::unique_ptr<service> service::start(const config::settings& settings, loader load) {
  std::unique_ptr<service> out(new service(std::make_unique<parts>(settings)));
  parts* raw = out->parts_.get();
  raw->loading = std::thread([raw, make = std::move(load)]() mutable { raw->load(std::move(make)); });
  return out;
}

service::service(std::unique_ptr<parts> p) : parts_(std::move(p)) {}
service::~service() { stop(); }

result<void> service::wait_until_loaded() {
  std::unique_lock lock(parts_->guard);
  parts_->changed.wait(lock, [&] { return parts_->state.load() != health_report::state_kind::loading; });
  if (parts_->load_failure) return *parts_->load_failure;
  return {};
}

void service::generate(generation_request request, event_sink sink) {
  parts* p = parts_.get();
  const auto shared = p->shared;
  // The last event goes out first; then the tables hear of it.
  auto on_end = [p, shared](request_context& ended) {
    if (const auto admission = shared->get(&house::admission))
      caf::anon_send(admission, ended_atom::value, ended.shared_from_this());
    p->request_ended(ended);
  };
  const auto refuse = [&](const char* why) {
    sink(generation_failed{{error_kind::unavailable, why, "gateway"}, std::chrono::seconds(1)});
  };
  std::unique_lock lock(p->guard);
  if (!p->serving()) {
    const auto state = p->state.load();
    lock.unlock();
    if (state == health_report::state_kind::loading) return refuse("the model is still loading");
    return refuse(state == health_report::state_kind::failed ? "the model could not be loaded"
                                                             : "the server is shutting down");
  }
  const auto context =
      std::make_shared<request_context>(std::move(request), std::move(sink), shared->clock(), std::move(on_end));
  shared->requests.add(context);  // from here on, a stop waits for it
  lock.unlock();
  hand_over(*shared, context, hop::gateway);
}

void service::parts::prepare(const text_call_ptr& call) {
  if (!serving()) return call->fail({error_kind::unavailable, "the model is not ready", "preparer"});
  const std::uint8_t next = shared->next_preparer();
  auto entered = enter(shared->preparer_stages[next]);
  if (!entered) return call->fail({error_kind::overloaded, "too many prompts are being prepared", "preparer"});
  caf::anon_send(shared->preparer(next).handle, text_atom::value, call, entered);
}

void service::tokenize(tokenize_request request, text_terms terms,
                       std::function<void(result<std::vector<token_id>>)> done) {
  auto call = std::make_shared<text_call>();
  call->what = std::move(request);
  call->terms = std::move(terms);
  call->on_tokens = std::move(done);
  parts_->prepare(call);
}

void service::detokenize(std::vector<token_id> ids, text_terms terms, std::function<void(result<std::string>)> done) {
  auto call = std::make_shared<text_call>();
  call->what = std::move(ids);
  call->terms = std::move(terms);
  call->on_text = std::move(done);
  parts_->prepare(call);
}

const model::opened_model* service::model() const {
  const auto state = parts_->state.load();
  const bool there = state == health_report::state_kind::ready || state == health_report::state_kind::draining;
  return there && parts_->started ? parts_->shared->model.get() : nullptr;
}

std::string service::served_name() const {
  if (const auto* opened = model()) return parts_->name_of(*opened);
  const auto& configured = parts_->shared->settings.model.name;
  return configured.empty() ? "default" : configured;
}

std::uint32_t service::max_context() const { return model() != nullptr ? parts_->shared->max_context : 0; }

health_report service::health() const {
  health_report report;
  report.state = parts_->state.load();
  const steady_time now = parts_->shared->clock();
  for (const auto& one : parts_->shared->stages()) {
    stage_health entry;
    entry.stage = one->name();
    entry.working = one->depth() > 0;
    entry.since_progress = entry.working ? one->progress().since(now) : std::chrono::milliseconds(0);
    entry.stalled = one->progress().stalled(now, parts_->shared->settings.supervision.stall_limit);
    report.healthy = report.healthy && !entry.stalled;
    report.stages.push_back(std::move(entry));
  }
  if (report.state == health_report::state_kind::ready || report.state == health_report::state_kind::draining) {
    const std::size_t total = parts_->shared->experts_to_load.load();
    report.loading_progress =
        total == 0 ? 1.0 : static_cast<double>(parts_->shared->experts_loaded.load()) / static_cast<double>(total);
  }
  if (report.state == health_report::state_kind::failed) report.healthy = false;
  return report;
}

expert_report service::experts() const { return model() != nullptr ? parts_->shared->experts() : expert_report{}; }
prometheus::Registry& service::metrics() { return parts_->shared->measured.registry(); }

void service::stop() {
  parts& p = *parts_;
  {
    const std::lock_guard lock(p.guard);
    if (p.stopped) return;
    p.stopped = true;
    p.state = health_report::state_kind::draining;
  }
  p.changed.notify_all();
  if (p.loading.joinable()) p.loading.join();
  const auto& shared = p.shared;
  {
    std::unique_lock lock(p.guard);
    p.changed.wait_for(lock, shared->settings.supervision.drain_limit, [&] { return shared->requests.empty(); });
  }
  for (const auto& context : shared->requests.all())
    context->fail({error_kind::unavailable, "the server shut down before the answer was complete", "gateway"});
  if (p.supervisor) caf::anon_send(p.supervisor, stop_atom::value);
  p.supervisor = nullptr;
  p.system.await_all_actors_done();
  shared->clear_handles();
}

}  // namespace troupe::actors
