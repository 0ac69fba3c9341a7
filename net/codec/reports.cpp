#include "net/codec/reports.hpp"

#include <boost/json/array.hpp>
#include <string_view>

#include "net/codec/answer_parts.hpp"

namespace troupe::net {
namespace {

namespace json = boost::json;
using state_kind = actors::health_report::state_kind;

std::string_view state_name(state_kind state) {
  switch (state) {
    case state_kind::loading:
      return "loading";
    case state_kind::ready:
      return "ready";
    case state_kind::draining:
      return "draining";
    case state_kind::failed:
      return "failed";
  }
  return "unknown";
}

}  // namespace

json::object model_json(const model_facts& model, std::int64_t created) {
  return {{"id", text_json(model.name)},
          {"object", "model"},
          {"created", created},
          {"owned_by", "troupe"},
          {"max_model_len", model.max_context}};
}

json::object models_json(const model_facts& model, std::int64_t created) {
  return {{"object", "list"}, {"data", json::array{model_json(model, created)}}};
}

bool is_alive(const actors::health_report& report) { return report.healthy && report.state != state_kind::failed; }

json::object health_json(const actors::health_report& report) {
  json::array stages;
  for (const auto& stage : report.stages)
    stages.push_back(json::object{{"stage", stage.stage},
                                  {"working", stage.working},
                                  {"ms_since_progress", stage.since_progress.count()},
                                  {"stalled", stage.stalled}});
  return {{"status", is_alive(report) ? "ok" : "unhealthy"},
          {"state", state_name(report.state)},
          {"loading_progress", report.loading_progress},
          {"stages", std::move(stages)}};
}

json::object experts_json(const actors::expert_report& report) {
  json::array layers;
  for (std::size_t layer = 0; layer < report.layers.size(); ++layer) {
    json::array experts;
    for (const auto& expert : report.layers[layer])
      experts.push_back(json::object{{"expert", experts.size()},
                                     {"tokens", expert.tokens},
                                     {"share", expert.share},
                                     {"resident", expert.resident},
                                     {"bytes", expert.bytes}});
    layers.push_back(json::object{{"layer", layer}, {"experts", std::move(experts)}});
  }
  return {{"precision", report.precision}, {"layers", std::move(layers)}};
}

}  // namespace troupe::net
