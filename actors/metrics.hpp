#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>

namespace troupe::actors {

/// The metrics of the actors. Names, types and buckets are vLLM's where the meaning is the same, under the prefix
/// "troupe:". Label sets are bounded: models, actors and reasons, never tenants or paths. Any thread.
class metrics {
 private:
  prometheus::Registry registry_;  // first: the families below live in it

 public:
  metrics();

  prometheus::Registry& registry() { return registry_; }

  prometheus::Family<prometheus::Gauge>& mailbox_depth;
  prometheus::Family<prometheus::Histogram>& mailbox_wait;
  prometheus::Family<prometheus::Histogram>& stage_service;
  prometheus::Family<prometheus::Counter>& mailbox_refusals;
  prometheus::Family<prometheus::Counter>& request_success;
  prometheus::Family<prometheus::Counter>& request_failure;
  prometheus::Family<prometheus::Counter>& cache_lookups;
  prometheus::Family<prometheus::Counter>& stage_restarts;

  static prometheus::Histogram::BucketBoundaries short_buckets();
};

/// The series that carry the served model's name: they begin once it is known, when the model is loaded. Any thread.
class model_metrics {
 private:
  prometheus::Registry& registry_;
  prometheus::Labels labels_;

 public:
  /// Once for a registry.
  model_metrics(metrics& all, const std::string& model_name);

  prometheus::Family<prometheus::Counter>& request_success;  ///< Of all models.
  prometheus::Gauge& requests_running;
  prometheus::Gauge& requests_waiting;
  prometheus::Gauge& kv_cache_usage;
  prometheus::Gauge& experts_resident;
  prometheus::Gauge& experts_resident_bytes;
  prometheus::Counter& expert_load_failures;
  prometheus::Counter& expert_tokens;
  prometheus::Gauge& expert_imbalance;
  prometheus::Counter& preemptions;
  prometheus::Counter& prompt_tokens;
  prometheus::Counter& generation_tokens;
  prometheus::Histogram& time_to_first_token;
  prometheus::Histogram& inter_token_latency;
  prometheus::Histogram& request_latency;
  prometheus::Histogram& request_queue_time;
  prometheus::Histogram& request_prefill_time;
  prometheus::Histogram& request_decode_time;
  prometheus::Histogram& request_inference_time;
  prometheus::Histogram& request_prompt_tokens;
  prometheus::Histogram& request_generation_tokens;
  prometheus::Histogram& step_tokens;
  prometheus::Histogram& batch_size;
  prometheus::Histogram& step_seconds;

 private:
  prometheus::Gauge& gauge(const std::string& name, const std::string& help);
  prometheus::Counter& counter(const std::string& name, const std::string& help);
  prometheus::Histogram& histogram(const std::string& name, const std::string& help,
                                   const prometheus::Histogram::BucketBoundaries& buckets);
};

}  // namespace troupe::actors
