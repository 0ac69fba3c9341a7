#include "actors/metrics.hpp"

namespace troupe::actors {
namespace {

using buckets = prometheus::Histogram::BucketBoundaries;

buckets first_token_buckets() {
  return {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560};
}
buckets token_gap_buckets() {
  return {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80};
}
buckets latency_buckets() {
  return {.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
}
buckets token_buckets() { return {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000}; }
buckets step_token_buckets() { return {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}; }
buckets batch_buckets() { return {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256}; }

template <class Builder>
auto& family(Builder builder, prometheus::Registry& registry, const std::string& name, const std::string& help) {
  return builder.Name("troupe:" + name).Help(help).Register(registry);
}

}  // namespace

buckets metrics::short_buckets() {
  return {.0001, .0005, .001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300};
}

metrics::metrics()
    : mailbox_depth(
          family(prometheus::BuildGauge(), registry_, "mailbox_depth", "Messages in an actor's mailbox or in work")),
      mailbox_wait(family(prometheus::BuildHistogram(), registry_, "mailbox_wait_seconds",
                          "Time that messages waited in an actor's mailbox")),
      stage_service(family(prometheus::BuildHistogram(), registry_, "stage_service_seconds",
                           "Time that an actor worked on a message")),
      mailbox_refusals(family(prometheus::BuildCounter(), registry_, "mailbox_refusals_total",
                              "Messages refused because a mailbox was full")),
      request_success(family(prometheus::BuildCounter(), registry_, "request_success_total",
                             "Choices that ended, by finish reason")),
      request_failure(
          family(prometheus::BuildCounter(), registry_, "request_failure_total", "Requests that failed, by kind")),
      cache_lookups(family(prometheus::BuildCounter(), registry_, "result_cache_lookups_total",
                           "Result cache lookups, by tier and result")),
      stage_restarts(family(prometheus::BuildCounter(), registry_, "stage_restarts_total",
                            "Actors that died and were restarted")) {}

prometheus::Gauge& model_metrics::gauge(const std::string& name, const std::string& help) {
  return family(prometheus::BuildGauge(), registry_, name, help).Add(labels_);
}
prometheus::Counter& model_metrics::counter(const std::string& name, const std::string& help) {
  return family(prometheus::BuildCounter(), registry_, name, help).Add(labels_);
}
prometheus::Histogram& model_metrics::histogram(const std::string& name, const std::string& help,
                                                const buckets& bounds) {
  return family(prometheus::BuildHistogram(), registry_, name, help).Add(labels_, bounds);
}

model_metrics::model_metrics(metrics& all, const std::string& model_name)
    : registry_(all.registry()),
      labels_{{"model_name", model_name}},
      request_success(all.request_success),
      requests_running(gauge("num_requests_running",
                             "Sequences that were let in: in the batch, or paused by clients that do not read")),
      requests_waiting(gauge("num_requests_waiting", "Sequences waiting for a place in the batch")),
      kv_cache_usage(gauge("kv_cache_usage_perc", "Share of KV pages in use, 0 to 1")),
      experts_resident(gauge("experts_resident", "Experts in compute layout")),
      experts_resident_bytes(gauge("experts_resident_bytes", "Memory of experts in compute layout")),
      expert_load_failures(counter("expert_load_failures_total", "Experts that could not be preloaded")),
      expert_tokens(counter("expert_tokens_total", "Token and expert pairs computed")),
      expert_imbalance(gauge("expert_imbalance", "Busiest expert's tokens over the mean, averaged over layers")),
      preemptions(counter("num_preemptions_total", "Sequences that gave up their KV pages")),
      prompt_tokens(counter("prompt_tokens_total", "Prompt tokens of requests that were let into the batch")),
      generation_tokens(counter("generation_tokens_total", "Tokens generated")),
      time_to_first_token(histogram("time_to_first_token_seconds", "From a request's arrival to its first token",
                                    first_token_buckets())),
      inter_token_latency(
          histogram("inter_token_latency_seconds", "Between two tokens of one choice", token_gap_buckets())),
      request_latency(
          histogram("e2e_request_latency_seconds", "From a request's arrival to its end", latency_buckets())),
      request_queue_time(
          histogram("request_queue_time_seconds", "From a request's arrival to its first step", latency_buckets())),
      request_prefill_time(
          histogram("request_prefill_time_seconds", "From the first step to the first token", latency_buckets())),
      request_decode_time(
          histogram("request_decode_time_seconds", "From the first token to the last", latency_buckets())),
      request_inference_time(
          histogram("request_inference_time_seconds", "From the first step to the last token", latency_buckets())),
      request_prompt_tokens(histogram("request_prompt_tokens", "Prompt tokens of a request", token_buckets())),
      request_generation_tokens(
          histogram("request_generation_tokens", "Generated tokens of a request", token_buckets())),
      step_tokens(histogram("iteration_tokens_total", "Rows of a step", step_token_buckets())),
      batch_size(histogram("batch_size", "Sequences of a step", batch_buckets())),
      step_seconds(
          histogram("step_seconds", "Inference latency: time of a step in the backend", metrics::short_buckets())) {}

}  // namespace troupe::actors
