#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cstring>
#include <set>

#include "base/json/strict_json.hpp"
#include "model/files/safetensors.hpp"
#include "model/model_parts.hpp"

/// Opens a Hugging Face folder: config.json, generation_config.json, safetensors (with or without an index),
/// tokenizer.json, tokenizer_config.json and chat_template.jinja.
namespace troupe::model {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t config_depth = 64;
constexpr std::size_t config_members = 1'000'000;  // a weight map names every tensor

result<json::object> read_object(const fs::path& path) {
  auto text = read_text(path);
  if (!text) return std::move(text).error();
  auto value = parse_json(*text, config_depth, config_members);
  if (!value) {
    const auto& failure = value.error();
    return error{error_kind::corrupt, failure.message,
                 path.string() + (failure.place.empty() ? "" : ": " + failure.place)};
  }
  if (!value->is_object()) return error{error_kind::corrupt, "is not a JSON object", path.string()};
  return std::move(value->get_object());
}

bool present(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The files that an index names, each once and inside the folder.
result<std::set<std::string>> shards_of(const fs::path& index_path, std::map<std::string, std::string>& weight_map) {
  auto index = read_object(index_path);
  if (!index) return std::move(index).error();
  const auto place = index_path.string() + ": weight_map";
  const auto* map = index->if_contains("weight_map");
  if (map == nullptr || !map->is_object()) return error{error_kind::corrupt, "is missing or not an object", place};
  std::set<std::string> shards;
  for (const auto& entry : map->get_object()) {
    const auto* file = entry.value().if_string();
    const std::string tensor(entry.key().data(), entry.key().size());
    if (file == nullptr) return error{error_kind::corrupt, "tensor '" + tensor + "' has no file name", place};
    const std::string name(file->data(), file->size());
    if (name.empty() || name.front() == '.' || name.find('/') != name.npos || name.find('\\') != name.npos ||
        name.find('\0') != name.npos)
      return error{error_kind::corrupt, "tensor '" + tensor + "' names a file outside the folder: '" + name + "'",
                   place};
    shards.insert(name);
    weight_map.emplace(tensor, name);
  }
  return shards;
}

result<void> read_weights(const fs::path& folder, std::vector<mapped_file>& files, tensor_table& tensors) {
  std::set<std::string> names;
  std::map<std::string, std::string> weight_map;
  if (const auto index = folder / "model.safetensors.index.json"; present(index)) {
    auto shards = shards_of(index, weight_map);
    if (!shards) return std::move(shards).error();
    names = *std::move(shards);
  } else {
    names.insert("model.safetensors");
    if (!present(folder / "model.safetensors"))
      return error{error_kind::not_found, "there is neither model.safetensors nor model.safetensors.index.json",
                   folder.string()};
  }
  for (const auto& name : names) {
    auto file = mapped_file::open(folder / name);
    if (!file) return std::move(file).error();
    files.push_back(*std::move(file));
    if (auto read = read_safetensors(files.back(), tensors); !read) return read;
  }
  for (const auto& [tensor, file] : weight_map) {
    const auto it = tensors.find(tensor);
    if (it == tensors.end() || fs::path(it->second.file).filename() != file)
      return error{error_kind::corrupt, "tensor '" + tensor + "' is not in " + file + ", as the index says",
                   folder.string()};
  }
  return {};
}

result<const architecture*> find_architecture(const config_reader& config, const std::string& place) {
  const auto names = config.texts("architectures");
  if (names.size() != 1) return error{error_kind::corrupt, "must name one architecture", place + ": architectures"};
  std::string known;
  for (const auto* candidate : architectures()) {
    if (candidate->hf_name == names[0]) return candidate;
    known += (known.empty() ? "" : ", ") + std::string(candidate->hf_name);
  }
  return error{error_kind::unsupported, "'" + names[0] + "' is not supported; these are: " + known,
               place + ": architectures"};
}

void read_end_tokens(const config_reader& config, std::uint32_t vocab, std::vector<token_id>& out) {
  const auto* value = config.json().if_contains("eos_token_id");
  if (value == nullptr || value->is_null()) return;
  const auto ids = value->is_array() ? config.sizes("eos_token_id") : std::vector{config.size({"eos_token_id"})};
  for (const auto id : ids) {
    if (id >= vocab)
      return config.fail(error_kind::corrupt, "eos_token_id",
                         std::to_string(id) + " is past the vocabulary's end at " + std::to_string(vocab));
    out.push_back(static_cast<token_id>(id));
  }
}

void read_generation_config(const config_reader& config, std::uint32_t vocab, generation_defaults& out) {
  const auto number = [&](std::string_view key, double low, double high) -> std::optional<double> {
    if (!config.has(key)) return std::nullopt;
    const double value = config.number({key});
    if (value < low || value > high)
      config.fail(error_kind::corrupt, key,
                  "must be from " + json::serialize(json::value(low)) + " to " + json::serialize(json::value(high)));
    return value;
  };
  if (config.flag({"do_sample"}, true)) {
    out.temperature = number("temperature", 0.0, 100.0);
    if (const auto top_k = number("top_k", -1, std::numeric_limits<int>::max())) out.top_k = static_cast<int>(*top_k);
    out.top_p = number("top_p", 0.0, 1.0);
    out.min_p = number("min_p", 0.0, 1.0);
  }
  out.repetition_penalty = number("repetition_penalty", 1e-3, 1e3);
  read_end_tokens(config, vocab, out.eos);
}

/// The template's text: chat_template.jinja, or tokenizer_config.json's chat_template, a string or a list of named
/// ones.
result<std::optional<std::string>> template_text(const fs::path& folder, const std::string& tokenizer_config) {
  if (const auto path = folder / "chat_template.jinja"; present(path)) {
    auto text = read_text(path, 1 << 20);
    if (!text) return std::move(text).error();
    return std::optional(*std::move(text));
  }
  if (tokenizer_config.empty()) return std::optional<std::string>();
  const std::string place = (folder / "tokenizer_config.json").string();
  auto config = parse_json(tokenizer_config, config_depth, config_members);
  if (!config || !config->is_object())
    return error{error_kind::corrupt, config ? "is not a JSON object" : config.error().message, place};
  const auto* value = config->get_object().if_contains("chat_template");
  if (value == nullptr || value->is_null()) return std::optional<std::string>();
  const auto text_of = [](const json::value& v) { return std::string(v.get_string().data(), v.get_string().size()); };
  if (value->is_string()) return std::optional(text_of(*value));
  if (const auto* list = value->if_array()) {
    for (const auto& named : *list) {
      const auto* entry = named.if_object();
      const auto* name = entry == nullptr ? nullptr : entry->if_contains("name");
      const auto* body = entry == nullptr ? nullptr : entry->if_contains("template");
      if (name != nullptr && body != nullptr && name->is_string() && body->is_string() && text_of(*name) == "default")
        return std::optional(text_of(*body));
    }
  }
  return error{error_kind::corrupt, "must be a string or a list with a template named 'default'",
               place + ": chat_template"};
}

}  // namespace

result<void> opened_model::parts::open_folder(const fs::path& folder, parts& into) {
  into.name = fs::weakly_canonical(folder).filename().string();
  const fs::path config_path = folder / "config.json";
  auto config_json = read_object(config_path);
  if (!config_json) return std::move(config_json).error();
  std::optional<error> failure;
  const config_reader config(*config_json, config_path.string(), failure);
  auto family = find_architecture(config, config_path.string());
  if (failure) return std::move(*failure);
  if (!family) return std::move(family).error();
  into.spec.architecture = (*family)->hf_name;
  read_common_config(config, (*family)->hf_defaults, into.spec);
  (*family)->read_config(config, into.spec);
  digest_builder digest;
  digest.add(json::serialize(*config_json));
  std::uint32_t block[2] = {0, 0};
  if (const auto quantization = config.object("quantization_config")) {
    const auto method = quantization->text({"quant_method"}, "");
    if (method != "fp8" && method != "compressed-tensors")
      quantization->fail(error_kind::unsupported, "quant_method",
                         "'" + method + "' is not supported; fp8 and compressed-tensors are");
    const auto sizes = quantization->sizes("weight_block_size");
    if (sizes.size() == 2) std::copy(sizes.begin(), sizes.end(), block);
  }
  if (const auto path = folder / "generation_config.json"; present(path)) {
    auto generation = read_object(path);
    if (!generation) return std::move(generation).error();
    read_generation_config(config_reader(*generation, path.string(), failure), into.spec.vocab, into.defaults);
    digest.add(json::serialize(*generation));
  }
  if (into.defaults.eos.empty()) read_end_tokens(config, into.spec.vocab, into.defaults.eos);
  if (failure) return std::move(*failure);
  if (auto sound = check_spec(into.spec, config_path.string()); !sound) return sound;

  if (auto read = read_weights(folder, into.files, into.tensors); !read) return read;
  into.weights.emplace(into.spec, into.tensors, std::vector{(*family)->hf_tensors, common_hf_tensors()}, block[0],
                       block[1]);

  const fs::path tokenizer_path = folder / "tokenizer.json";
  auto tokenizer_json = read_text(tokenizer_path);
  if (!tokenizer_json) return std::move(tokenizer_json).error();
  std::string tokenizer_config;
  if (const auto path = folder / "tokenizer_config.json"; present(path)) {
    auto text = read_text(path);
    if (!text) return std::move(text).error();
    tokenizer_config = *std::move(text);
  }
  auto text = tokenizer::from_json(*tokenizer_json, tokenizer_config, tokenizer_path.string());
  if (!text) return std::move(text).error();
  into.text = *std::move(text);
  // Chat models made from base models often name their end only here.
  auto& ends = into.defaults.eos;
  if (const auto end = into.text->eos(); end && std::find(ends.begin(), ends.end(), *end) == ends.end())
    ends.push_back(*end);

  auto chat = template_text(folder, tokenizer_config);
  if (!chat) return std::move(chat).error();
  if (*chat && !into.chat) {
    auto parsed = chat_template::parse(**chat, folder.string() + ": chat template");
    if (!parsed) return std::move(parsed).error();
    into.chat = *std::move(parsed);
  }

  digest.add(*tokenizer_json);
  digest.add(tokenizer_config);
  digest.add(chat->value_or(""));
  for (const auto& file : into.files) {
    std::uint64_t header = 0;
    std::memcpy(&header, file.bytes().data(), sizeof header);
    header = std::min<std::uint64_t>(header, file.bytes().size() - 8);  // it may be written over meanwhile
    digest.add({reinterpret_cast<const char*>(file.bytes().data()), header + 8});
    digest.add_samples(file.bytes().subspan(header + 8));
  }
  into.digest = digest.finish();
  return {};
}

}  // namespace troupe::model
