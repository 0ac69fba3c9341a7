#include "app/inspect.hpp"

#include <cstdio>
#include <map>
#include <string>

#include "model/chat/chat_template.hpp"
#include "model/model.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe::app {
namespace {

using model::tensor_role;

struct totals {
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
};

/// Sums up the weights that a token passes through (`active`) and all weights, by type.
class census {
 public:
  explicit census(const model::opened_model& model) : model_(model), spec_(model.spec()) {
    using enum tensor_role;
    count(embedding, 0, 0, 1.0);
    if (!spec_.tied_embeddings) count(lm_head, 0, 0, 1.0);
    for (std::uint32_t l = 0; l < spec_.layers.size(); ++l) count_layer(l);
  }

  const std::map<std::string, totals>& by_type() const { return by_type_; }
  std::uint64_t parameters() const { return parameters_; }
  double active() const { return active_; }

 private:
  void count_layer(std::uint32_t layer) {
    using enum tensor_role;
    for (const auto role : {query, key, value, attention_output}) count(role, layer, 0, 1.0);
    if (!spec_.layers[layer].sparse) {
      for (const auto role : {ffn_gate, ffn_up, ffn_down}) count(role, layer, 0, 1.0);
      return;
    }
    count(router, layer, 0, 1.0);
    const double share = static_cast<double>(spec_.moe.top_k) / spec_.moe.experts;
    for (std::uint32_t e = 0; e < spec_.moe.experts; ++e)
      for (const auto role : {expert_gate, expert_up, expert_down}) count(role, layer, e, share);
    if (spec_.moe.shared_ffn != 0)
      for (const auto role : {shared_gate_proj, shared_up, shared_down}) count(role, layer, 0, 1.0);
  }

  void count(tensor_role role, std::uint32_t layer, std::uint32_t expert, double share) {
    const auto weight = model_.weight(role, layer, expert);
    const std::uint64_t values = std::uint64_t{weight.rows} * weight.cols;
    auto& type = by_type_[std::string(model::traits(weight.type).name)];
    type.parameters += values;
    type.bytes += weight.bytes.size();
    parameters_ += values;
    active_ += share * static_cast<double>(values);
  }

  const model::opened_model& model_;
  const model::model_spec& spec_;
  std::map<std::string, totals> by_type_;
  std::uint64_t parameters_ = 0;
  double active_ = 0.0;
};

/// "36 k", "135 M", "1.3 B".
std::string mebibytes(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

std::string short_count(double count) {
  char out[32];
  if (count < 1e6)
    std::snprintf(out, sizeof out, "%.0f k", count / 1e3);
  else if (count < 1e9)
    std::snprintf(out, sizeof out, "%.0f M", count / 1e6);
  else
    std::snprintf(out, sizeof out, "%.1f B", count / 1e9);
  return out;
}

std::string_view name_of(model::rope_kind kind) {
  switch (kind) {
    case model::rope_kind::none:
      return "plain";
    case model::rope_kind::linear:
      return "linear";
    case model::rope_kind::dynamic:
      return "dynamic";
    case model::rope_kind::llama3:
      return "llama3";
    case model::rope_kind::yarn:
      return "yarn";
  }
  return "plain";
}

void print_experts(const model::model_spec& spec, std::ostream& out) {
  std::size_t sparse = 0;
  for (const auto& layer : spec.layers) sparse += layer.sparse ? 1 : 0;
  if (sparse == 0) {
    out << "experts       none: the model is dense\n";
    return;
  }
  out << "experts       " << spec.moe.experts << " in each of " << sparse << " layers, " << spec.moe.top_k
      << " per token, width " << spec.moe.ffn;
  if (spec.moe.shared_ffn != 0) out << "; one shared expert of width " << spec.moe.shared_ffn;
  out << (spec.moe.normalize_top_k ? "; gates renormalised\n" : "; gates as they are\n");
}

}  // namespace

result<void> inspect(const std::filesystem::path& path, std::ostream& out) {
  auto opened = model::opened_model::open(path);
  if (!opened) return std::move(opened).error();
  const auto& m = **opened;
  const auto& spec = m.spec();
  const census weights(m);
  out << "model         " << m.name() << " (" << spec.architecture << ")\n"
      << "parameters    " << short_count(static_cast<double>(weights.parameters())) << ", "
      << short_count(weights.active()) << " active per token\n"
      << "layers        " << spec.layers.size() << ", hidden " << spec.hidden << ", vocabulary " << spec.vocab
      << (spec.tied_embeddings ? ", tied embeddings\n" : "\n") << "attention     " << spec.attention.heads << " heads, "
      << spec.attention.kv_heads << " key-value heads of " << spec.attention.head_dim << "; RoPE "
      << name_of(spec.rope.kind) << ", base " << spec.rope.theta << "\n"
      << "context       " << spec.max_context << " tokens\n";
  print_experts(spec, out);
  out << "weights       ";
  const char* between = "";
  for (const auto& [type, sum] : weights.by_type()) {
    out << between << type << ' ' << short_count(static_cast<double>(sum.parameters)) << " (" << mebibytes(sum.bytes)
        << ")";
    between = ", ";
  }
  out << "; files of " << mebibytes(m.file_bytes());
  out << "\ntokenizer     " << m.text().vocab_size() << " tokens\n"
      << "chat          "
      << (m.chat() != nullptr ? "template present\n" : "no template: only completions can be served\n")
      << "digest        " << m.digest() << '\n';
  return {};
}

}  // namespace troupe::app
