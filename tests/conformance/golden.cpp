#include "golden.hpp"

#include <boost/json.hpp>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <ostream>
#include <stdexcept>

namespace troupe::conformance {
namespace {

std::filesystem::path folder() { return std::filesystem::path(TROUPE_TEST_DATA) / "models"; }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<token_id> ids_of(const boost::json::value& list) {
  return boost::json::value_to<std::vector<token_id>>(list);
}

std::string text_of(const boost::json::object& row, const char* key) { return std::string(row.at(key).as_string()); }

golden_model model_of(const boost::json::object& row) {
  golden_model model;
  model.name = text_of(row, "name");
  model.architecture = text_of(row, "architecture");
  model.features = text_of(row, "features");
  model.file = text_of(row, "file");
  model.path = folder() / model.name;
  model.vocab = row.at("vocab").to_number<std::size_t>();
  const auto& prompts = row.at("prompts").as_array();
  const auto& continuations = row.at("continuations").as_array();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    model.prompts.push_back({ids_of(prompts[i]), ids_of(continuations.at(i)), {}});
  }
  return model;
}

boost::json::array index() { return boost::json::parse(read_file(folder() / "index.json")).as_array(); }

std::string logits_file(const std::string& model) {
  for (const auto& row : index()) {
    if (row.at("name").as_string() == model) return text_of(row.as_object(), "logits");
  }
  throw std::runtime_error("no golden model " + model);
}

float fixed_point(const char* bytes) {
  std::uint32_t bits = 0;
  for (int i = 0; i < 3; ++i) bits |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 + 8 * i);
  return static_cast<float>(static_cast<std::int32_t>(bits) >> 8) * 0x1p-18F;
}

}  // namespace

void PrintTo(const golden_model& model, std::ostream* out) { *out << model.name; }

std::vector<golden_model> golden_models() {
  std::vector<golden_model> models;
  for (const auto& row : index()) models.push_back(model_of(row.as_object()));
  return models;
}

void read_logits(golden_model& model) {
  const std::string bytes = read_file(folder() / logits_file(model.name));
  std::size_t at = 0;
  for (auto& prompt : model.prompts) {
    prompt.logits.resize(prompt.ids.size() * model.vocab);
    if (at + 3 * prompt.logits.size() > bytes.size()) throw std::runtime_error(model.name + ".logits is too short");
    for (float& logit : prompt.logits) {
      logit = fixed_point(bytes.data() + at);
      at += 3;
    }
  }
  if (at != bytes.size()) throw std::runtime_error(model.name + ".logits is too long");
}

golden_model golden_model_named(const std::string& name) {
  for (auto& model : golden_models()) {
    if (model.name == name) {
      read_logits(model);
      return model;
    }
  }
  throw std::runtime_error("no golden model " + name);
}

}  // namespace troupe::conformance
