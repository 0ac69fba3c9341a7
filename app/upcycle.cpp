#include "app/upcycle.hpp"

#include <unistd.h>

#include <array>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cmath>
#include <list>
#include <optional>

#include "base/json/strict_json.hpp"
#include "model/files/gguf.hpp"
#include "model/files/mapped_file.hpp"
#include "model/files/new_file.hpp"
#include "model/files/tensor_table.hpp"
#include "model/model.hpp"
#include "model/sampling/philox.hpp"

namespace troupe::app {
namespace {

namespace fs = std::filesystem;
using model::dtype;
using model::tensor_to_write;

/// Router weights of one layer, [experts, hidden]: uniform, with a spread that gives logits of order one on normalised
/// activations. The same on every machine.
std::vector<float> router_weights(std::uint64_t seed, std::uint32_t layer, std::uint64_t count, std::uint32_t hidden) {
  const double bound = std::sqrt(3.0 / hidden);
  std::vector<float> weights(count);
  for (std::uint64_t i = 0; i < count; ++i)
    weights[i] = static_cast<float>((2.0 * model::uniform_draw(seed, layer, i) - 1.0) * bound);
  return weights;
}

/// Which layer and which part of its dense FFN a tensor is; nothing for all other tensors.
struct ffn_tensor {
  std::uint32_t layer;
  std::string part;
};
std::optional<ffn_tensor> as_ffn_tensor(std::string_view name, std::string_view prefix, std::string_view middle,
                                        std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  name = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  const auto dot = name.find(middle);
  if (dot == std::string_view::npos || dot == 0 || dot > 5) return std::nullopt;
  const std::string_view number = name.substr(0, dot);
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return ffn_tensor{static_cast<std::uint32_t>(std::stoul(std::string(number))),
                    std::string(name.substr(dot + middle.size()))};
}

/// Keeps routers' values alive until they are written.
using router_store = std::list<std::vector<float>>;

tensor_to_write router_tensor(const upcycle_options& options, std::string name, std::uint32_t layer,
                              std::uint32_t hidden, router_store& store) {
  store.push_back(router_weights(options.seed, layer, std::uint64_t{options.experts} * hidden, hidden));
  return {std::move(name), dtype::f32, {options.experts, hidden}, {std::as_bytes(std::span(store.back()))}};
}

result<void> upcycle_gguf(const upcycle_options& options, const model::opened_model& dense,
                          const model::write_progress& progress) {
  auto mapped = model::mapped_file::open(options.from);
  if (!mapped) return std::move(mapped).error();
  auto file = model::gguf_file::read(*mapped);
  if (!file) return std::move(file).error();

  model::gguf_writer writer;
  for (const auto& entry : file->entries()) {
    if (entry.key == "general.name") {
      const std::string name(file->text(entry.key).value_or(dense.name()));
      writer.set(entry.key, name + " upcycled to " + std::to_string(options.experts) + " experts");
    } else if (entry.key != "general.alignment" && entry.key != "llama.expert_count" &&
               entry.key != "llama.expert_used_count") {
      writer.copy(entry);
    }
  }
  writer.set("llama.expert_count", options.experts);
  writer.set("llama.expert_used_count", options.top_k);

  router_store routers;
  for (const auto& name : file->tensor_order()) {
    const auto& stored = file->tensors().find(name)->second;
    if (!stored.readable)
      return error{error_kind::unsupported, "tensor '" + name + "' of type " + stored.type_name + " cannot be copied",
                   options.from.string()};
    tensor_to_write tensor{name, stored.type, stored.shape, {stored.bytes}};
    const auto ffn = as_ffn_tensor(name, "blk.", ".ffn_", ".weight");
    if (ffn && (ffn->part == "gate" || ffn->part == "up" || ffn->part == "down")) {
      const std::string block = "blk." + std::to_string(ffn->layer) + ".ffn_";
      tensor.name = block + ffn->part + "_exps.weight";
      tensor.shape.insert(tensor.shape.begin(), options.experts);
      tensor.stretches.assign(options.experts, stored.bytes);
      if (ffn->part == "gate")
        writer.add(router_tensor(options, block + "gate_inp.weight", ffn->layer, dense.spec().hidden, routers));
    }
    writer.add(std::move(tensor));
  }
  return writer.write(options.to, progress);
}

/// The double that a person would write for this float: 1e-05, not 9.99999974e-06.
double shortest(float value) {
  std::array<char, 32> text;
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  double exact = value;
  std::from_chars(text.data(), written.ptr, exact);
  return exact;
}

/// config.json of the new model. `spec`: what the dense model computes.
result<std::string> moe_config(const upcycle_options& options, const model::model_spec& spec) {
  auto text = model::read_text(options.from / "config.json");
  if (!text) return std::move(text).error();
  auto parsed = parse_json(*text, 64);
  if (!parsed) return std::move(parsed).error();
  auto& config = parsed->get_object();
  config["architectures"] = {"MixtralForCausalLM"};
  config["model_type"] = "mixtral";
  config["num_local_experts"] = options.experts;
  config["num_experts_per_tok"] = options.top_k;
  // Where the source relies on its class's defaults, Mixtral's would be other ones.
  const auto keep = [&](std::string_view key, const boost::json::value& value) {
    if (const auto* given = config.if_contains(key); given == nullptr || given->is_null()) config[key] = value;
  };
  keep("rms_norm_eps", shortest(spec.norm_epsilon));
  keep("num_key_value_heads", spec.attention.kv_heads);
  keep("max_position_embeddings", spec.max_context);
  keep("rope_theta", spec.rope.theta);  // rope_parameters' own, if there, counts more
  config["sliding_window"] = nullptr;   // Llama ignores the key, Mixtral does not
  if (const auto window = spec.layers[0].sliding_window; window != 0) config["sliding_window"] = window;
  for (const auto* key : {"attention_bias", "mlp_bias", "pretraining_tp"}) config.erase(key);
  return boost::json::serialize(config) + "\n";
}

result<std::vector<tensor_to_write>> moe_tensors(const upcycle_options& options, const model::opened_model& dense,
                                                 router_store& routers) {
  std::vector<tensor_to_write> out;
  const auto as_it_is = [](std::string name, const model::matrix_view& view) {
    std::vector<std::uint64_t> shape{view.cols};
    if (view.rows != 1) shape.insert(shape.begin(), view.rows);
    return tensor_to_write{std::move(name), view.type, std::move(shape), {view.bytes}};
  };
  using enum model::tensor_role;
  const auto& spec = dense.spec();
  for (const auto role : {embedding, final_norm}) out.push_back(as_it_is(dense.weight(role).name, dense.weight(role)));
  if (!spec.tied_embeddings) out.push_back(as_it_is(dense.weight(lm_head).name, dense.weight(lm_head)));
  for (std::uint32_t l = 0; l < spec.layers.size(); ++l) {
    for (const auto role : {attention_norm, query, key, value, attention_output, ffn_norm})
      out.push_back(as_it_is(dense.weight(role, l).name, dense.weight(role, l)));
    const std::string block = "model.layers." + std::to_string(l) + ".block_sparse_moe.";
    out.push_back(router_tensor(options, block + "gate.weight", l, spec.hidden, routers));
    for (std::uint32_t e = 0; e < options.experts; ++e) {
      const std::string expert = block + "experts." + std::to_string(e) + ".";
      out.push_back(as_it_is(expert + "w1.weight", dense.weight(ffn_gate, l)));
      out.push_back(as_it_is(expert + "w2.weight", dense.weight(ffn_down, l)));
      out.push_back(as_it_is(expert + "w3.weight", dense.weight(ffn_up, l)));
    }
  }
  for (const auto& tensor : out)
    if (tensor.type == dtype::i8 || tensor.type == dtype::f8_e4m3)
      return error{error_kind::unsupported,
                   "tensor '" + tensor.name + "' is quantised with scales; upcycle the unquantised model",
                   options.from.string()};
  return out;
}

/// A folder that vanishes again unless it takes its final name.
class new_folder {
 public:
  explicit new_folder(const fs::path& to)
      : to_(to), temporary_(to.string() + "." + std::to_string(::getpid()) + ".part") {
    if (!fs::create_directory(temporary_, failure_)) temporary_.clear();  // never touch what was there before
  }
  new_folder(const new_folder&) = delete;
  new_folder& operator=(const new_folder&) = delete;
  ~new_folder() {
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  }
  const fs::path& path() const { return temporary_; }
  result<void> state() const {
    if (failure_) return error{error_kind::io, "cannot write there: " + failure_.message(), to_.string()};
    if (temporary_.empty())
      return error{error_kind::io, "cannot write there: the temporary folder exists", to_.string()};
    return {};
  }
  result<void> commit() {
    fs::rename(temporary_, to_, failure_);
    auto done = state();
    if (done) temporary_.clear();
    return done;
  }

 private:
  fs::path to_;
  fs::path temporary_;
  std::error_code failure_;
};

result<void> upcycle_folder(const upcycle_options& options, const model::opened_model& dense,
                            const model::write_progress& progress) {
  std::error_code unknown;  // what cannot be looked at cannot be made either, and that says why
  if (fs::exists(options.to, unknown))
    return error{error_kind::invalid, "exists already; name a new folder", options.to.string()};
  new_folder folder(options.to);
  if (auto made = folder.state(); !made) return made;
  auto config = moe_config(options, dense.spec());
  if (!config) return std::move(config).error();
  router_store routers;
  auto tensors = moe_tensors(options, dense, routers);
  if (!tensors) return std::move(tensors).error();
  if (auto written = model::write_safetensors(folder.path() / "model.safetensors", *tensors, progress); !written)
    return written;
  auto config_file = model::new_file::create(folder.path() / "config.json", config->size());
  if (!config_file) return std::move(config_file).error();
  config_file->write(*config);
  if (auto written = config_file->commit(); !written) return written;
  std::error_code failure;
  for (const auto* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja",
                           "special_tokens_map.json"})
    if (!failure && fs::exists(options.from / name, unknown))
      fs::copy_file(options.from / name, folder.path() / name, failure);
  if (failure)
    return error{error_kind::io, "cannot copy the tokenizer's files: " + failure.message(), options.to.string()};
  return folder.commit();
}

}  // namespace

result<void> upcycle(const upcycle_options& given, const model::write_progress& progress) {
  upcycle_options options = given;
  if (!options.to.has_filename()) options.to = options.to.parent_path();  // "new-model/"
  if (options.to.empty()) return error{error_kind::invalid, "must name a new file or folder", "TO"};
  if (options.experts < 2 || options.experts > 1024)
    return error{error_kind::invalid, "must be from 2 to 1024", "--experts"};
  if (options.top_k < 1 || options.top_k > options.experts)
    return error{error_kind::invalid, "must be from 1 to the number of experts", "--top-k"};
  auto dense = model::opened_model::open(options.from);
  if (!dense) return std::move(dense).error();
  const auto& spec = (*dense)->spec();
  const bool llama = spec.architecture == "LlamaForCausalLM" || spec.architecture == "MistralForCausalLM";
  if (!llama || spec.moe.experts != 0 || spec.attention.qkv_bias)
    return error{error_kind::unsupported,
                 "only dense models of Llama's kind without biases can be upcycled; this is " + spec.architecture,
                 options.from.string()};
  std::error_code same;
  if (fs::equivalent(options.from, options.to, same))
    return error{error_kind::invalid, "must not be the source itself", options.to.string()};
  return fs::is_directory(options.from, same) ? upcycle_folder(options, **dense, progress)
                                              : upcycle_gguf(options, **dense, progress);
}

}  // namespace troupe::app
