#include "actors/stage.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include "actors/metrics.hpp"

namespace troupe::actors {
namespace {

double seconds(steady_time::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

std::string role_of(const std::string& stage_name) { return stage_name.substr(0, stage_name.find(' ')); }

stage::stage(std::string name, std::int64_t bound, metrics& registry, clock_function clock)
    : name_(std::move(name)),
      bound_(bound),
      clock_(std::move(clock)),
      depth_(registry.mailbox_depth.Add({{"actor", role_of(name_)}})),
      wait_(registry.mailbox_wait.Add({{"actor", role_of(name_)}}, metrics::short_buckets())),
      service_(registry.stage_service.Add({{"actor", role_of(name_)}}, metrics::short_buckets())),
      refusals_(registry.mailbox_refusals.Add({{"actor", role_of(name_)}})) {}

std::chrono::seconds stage::retry_after() {
  const std::lock_guard lock(measuring_);
  return drain_.wait_for(1.0, clock_());
}

ticket::ticket(std::shared_ptr<stage> in) : in_(std::move(in)), entered_(in_->now()) {
  in_->progress_.enter(entered_);
  in_->depth_.Increment();
}

ticket::~ticket() {
  const steady_time now = in_->now();
  if (begun_ != steady_time{}) in_->service_.Observe(seconds(now - begun_));
  in_->depth_.Decrement();
  in_->progress_.leave(now);
  if (in_->bound_ == 0) return;
  const std::lock_guard lock(in_->measuring_);
  in_->drain_.left(now, 1);
}

void ticket::begin() {
  if (begun_ != steady_time{}) return;
  begun_ = in_->now();
  in_->progress_.moved(begun_);
  in_->wait_.Observe(seconds(begun_ - entered_));
}

ticket_ptr enter(const std::shared_ptr<stage>& into) {
  if (into->bound_ != 0 && into->depth() >= into->bound_) {
    into->refusals_.Increment();
    return nullptr;
  }
  return std::make_shared<ticket>(into);
}

ticket_ptr enter_admitted(const std::shared_ptr<stage>& into) { return std::make_shared<ticket>(into); }

}  // namespace troupe::actors
