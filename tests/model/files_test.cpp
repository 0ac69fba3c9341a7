#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "model/files/gguf.hpp"
#include "model/files/mapped_file.hpp"
#include "model/files/safetensors.hpp"
#include "model/files/tensor_writer.hpp"
#include "model/model.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "model/weights.hpp"

namespace troupe::model {
namespace {

namespace fs = std::filesystem;

const fs::path faults = fs::path(TROUPE_TEST_DATA) / "faults";

/// A file in memory: ten thousand damaged copies on a disk would take a minute.
class scratch_file {
 public:
  scratch_file() : file_(::memfd_create("model", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(file_)) {}
  scratch_file(const scratch_file&) = delete;
  scratch_file& operator=(const scratch_file&) = delete;
  ~scratch_file() { ::close(file_); }
  void write(std::string_view bytes) const {
    ASSERT_EQ(::ftruncate(file_, static_cast<off_t>(bytes.size())), 0);
    ASSERT_EQ(::pwrite(file_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  const fs::path& path() const { return path_; }

 private:
  int file_;
  fs::path path_;
};

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct fault {
  std::string name;
  std::string outcome;
};

std::vector<fault> listed_faults() {
  std::vector<fault> out;
  std::istringstream lines(contents(faults / "EXPECT.tsv"));
  for (std::string line; std::getline(lines, line);) {
    const auto tab = line.find('\t');
    const std::string name = line.substr(0, tab);
    if (name.starts_with("control") || name.starts_with("B26") || name.starts_with("B27") || name.starts_with("B28") ||
        name.starts_with("B29"))
      out.push_back({name, line.substr(tab + 1)});
  }
  return out;
}

fs::path file_of(const std::string& name) {
  return fs::exists(faults / (name + ".gguf")) ? faults / (name + ".gguf") : faults / name;
}

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(MappedFile, ReadsAsZerosAndTellsWhereItCanNoLongerBeRead) {
  const scratch_file cut, whole;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  cut.write(std::string(8 * page, 'x'));
  whole.write(std::string(8 * page, 'x'));
  auto mapped = mapped_file::open(cut.path());
  const auto other = mapped_file::open(whole.path());
  ASSERT_TRUE(mapped && other);
  ASSERT_EQ(::truncate(cut.path().c_str(), static_cast<off_t>(2 * page)), 0);
  const mapped_file moved = std::move(*mapped);
  const auto bytes = moved.bytes();
  EXPECT_EQ(bytes[2 * page - 1], std::byte{'x'});
  EXPECT_TRUE(check_readable(bytes)) << "nothing was read yet that is not there";
  EXPECT_EQ(bytes[5 * page], std::byte{0});
  EXPECT_TRUE(check_readable(bytes.first(5 * page)));
  EXPECT_FALSE(check_readable(bytes.first(5 * page + 1)));
  EXPECT_EQ(bytes[2 * page], std::byte{0});
  EXPECT_TRUE(check_readable(bytes.first(2 * page)));
  EXPECT_FALSE(check_readable(bytes.subspan(2 * page, 1)));
  EXPECT_EQ(bytes[8 * page - 1], std::byte{0});
  EXPECT_TRUE(check_readable(other->bytes()));
  EXPECT_EQ(other->bytes()[7 * page], std::byte{'x'});
}

TEST(MappedFile, StillEndsTheProcessWhereNothingIsGuarded) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_DEATH(
      {
        const scratch_file file;
        file.write(std::string(page, 'x'));
        (void)mapped_file::open(file.path());  // the guard is there, for another range
        const int again = ::open(file.path().c_str(), O_RDONLY);
        const auto* raw = static_cast<const char*>(::mmap(nullptr, page, PROT_READ, MAP_SHARED, again, 0));
        file.write("");
        volatile const char first = raw[0];
        (void)first;
      },
      "");
}

TEST(MappedFile, LeavesASignalThatSomebodySendsDeadly) {
  const scratch_file file;
  file.write("x");
  const auto guarded = mapped_file::open(file.path());
  EXPECT_EXIT(::kill(::getpid(), SIGBUS), ::testing::KilledBySignal(SIGBUS), "");
}

TEST(ModelFaults, AreAllListed) { EXPECT_GE(listed_faults().size(), 37U); }

TEST(ModelFaults, AreRefusedWithAPlaceAndWithoutMemory) {
  for (const auto& [name, outcome] : listed_faults()) {
    SCOPED_TRACE(name);
    const long before = peak_kib();
    const auto opened = opened_model::open(file_of(name));
    if (outcome == "loads") {
      EXPECT_TRUE(opened) << (opened ? "" : opened.error().to_string());
      continue;
    }
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().to_string().find(name), std::string::npos) << opened.error().to_string();
    EXPECT_LT(peak_kib() - before, 16 << 10) << opened.error().to_string();
    if (outcome.find("missing") != std::string::npos) {
      EXPECT_NE(opened.error().message.find("missing"), std::string::npos) << opened.error().to_string();
      EXPECT_NE(opened.error().kind, error_kind::corrupt);
    }
  }
}

TEST(Gguf, LoadsOrRefusesEveryPrefix) {
  const std::string whole = contents(faults / "control-gguf.gguf");
  const scratch_file cut;
  std::size_t refused = 0;
  for (std::size_t length = 1; length < whole.size(); length += 1) {
    cut.write(std::string_view(whole).substr(0, length));
    const auto mapped = mapped_file::open(cut.path());
    ASSERT_TRUE(mapped);
    const auto read = gguf_file::read(*mapped);
    if (!read) {
      ++refused;
      EXPECT_FALSE(read.error().place.empty());
    }
  }
  EXPECT_GT(refused, 1000U);
}

TEST(Gguf, SurvivesFlippedBits) {
  const std::string whole = contents(faults / "control-gguf.gguf");
  const scratch_file flipped;
  std::mt19937 random(2026);
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes = whole;
    // Headers are where damage can mislead: nine of ten flips hit the first quarter.
    const std::size_t range = i % 10 == 0 ? bytes.size() : bytes.size() / 4;
    bytes[random() % range] ^= static_cast<char>(1U << (random() % 8));
    flipped.write(bytes);
    if (i % 20 == 0) {
      const auto opened = opened_model::open(flipped.path());
      EXPECT_TRUE(opened || !opened.error().to_string().empty());
      continue;
    }
    const auto mapped = mapped_file::open(flipped.path());
    ASSERT_TRUE(mapped);
    const auto read = gguf_file::read(*mapped);
    EXPECT_TRUE(read || !read.error().place.empty());
  }
}

TEST(Safetensors, SurvivesFlippedBitsAndCuts) {
  const std::string whole = contents(faults / "control/model.safetensors");
  const scratch_file damaged;
  std::mt19937 random(7);
  const auto read_damaged = [&](std::string_view bytes) {
    damaged.write(bytes);
    const auto mapped = mapped_file::open(damaged.path());
    if (!mapped) return;
    tensor_table table;
    const auto read = read_safetensors(*mapped, table);
    EXPECT_TRUE(read || !read.error().place.empty());
    EXPECT_TRUE(read || table.empty());
  };
  for (std::size_t length = 0; length < whole.size(); length += length < 2048 ? 1 : 211)
    read_damaged(std::string_view(whole).substr(0, length));
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = whole;
    bytes[random() % std::min<std::size_t>(bytes.size(), 2048)] ^= static_cast<char>(1U << (random() % 8));
    read_damaged(bytes);
  }
}

/// A copy of the control model whose files a test may change.
class model_copy {
 public:
  explicit model_copy(const fs::path& of = faults / "control")
      : folder_(fs::temp_directory_path() / ("troupe-model-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::copy(of, folder_);
  }
  model_copy(const model_copy&) = delete;
  model_copy& operator=(const model_copy&) = delete;
  ~model_copy() { fs::remove_all(folder_); }

  void write(const std::string& file, const std::string& text) const {
    std::ofstream(folder_ / file, std::ios::binary) << text;
  }
  void replace_in(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = contents(folder_ / file);
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write(file, text.replace(at, from.size(), to));
  }
  std::string refusal() const {
    const auto opened = opened_model::open(folder_);
    return opened ? "it opened" : opened.error().to_string();
  }
  const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

TEST(ModelFolder, NamesTheKeyThatIsWrong) {
  struct change {
    const char* from;
    const char* to;
    const char* named;
  };
  const change changes[] = {
      {"\"hidden_size\":32", "\"hidden_size\":\"32\"", "hidden_size"},
      {"\"hidden_size\":32", "\"hidden_size\":-32", "hidden_size"},
      {"\"hidden_size\":32", "\"hidden_size\":1e30", "hidden_size"},
      {"\"hidden_size\":32,", "", "hidden_size"},
      {"\"num_hidden_layers\":1", "\"num_hidden_layers\":0", "num_hidden_layers"},
      {"\"num_hidden_layers\":1", "\"num_hidden_layers\":4000000000", "num_hidden_layers"},
      {"\"num_hidden_layers\":1", "\"num_hidden_layers\":2", "model.layers.1."},
      {"\"num_attention_heads\":2", "\"num_attention_heads\":0", "num_attention_heads"},
      {"\"num_key_value_heads\":1", "\"num_key_value_heads\":3", "num_key_value_heads"},
      {"\"vocab_size\":260", "\"vocab_size\":261", "embed_tokens"},
      {"\"LlamaForCausalLM\"", "\"GPT9ForCausalLM\"", "GPT9ForCausalLM"},
      {"\"hidden_act\":\"silu\"", "\"hidden_act\":\"gelu\"", "hidden_act"},
      {"\"rope_theta\":10000.0", "\"rope_theta\":0", "rope_theta"},
      {"\"rope_theta\":10000.0", "\"rope_theta\":10000.0,\"rope_theta\":5", "rope_theta"},
      {"\"rope_theta\":10000.0", "\"rope_scaling\":{\"rope_type\":\"magic\",\"factor\":2}", "magic"},
      {"\"rope_theta\":10000.0", "\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":0}", "factor"},
      {"{", "[", "config.json"},
  };
  for (const auto& [from, to, named] : changes) {
    const model_copy copy;
    copy.replace_in("config.json", from, to);
    EXPECT_NE(copy.refusal().find(named), std::string::npos) << to << ": " << copy.refusal();
  }
}

TEST(ModelFolder, RefusesAnIndexThatLeavesTheFolderOrNamesAMissingShard) {
  for (const std::string shard :
       {"../control/model.safetensors", "/etc/passwd", "sub/model.safetensors", ".hidden", ""}) {
    const model_copy copy;
    copy.write("model.safetensors.index.json", R"({"weight_map":{"model.norm.weight":")" + shard + "\"}}");
    EXPECT_NE(copy.refusal().find("outside the folder"), std::string::npos) << copy.refusal();
  }
  const model_copy copy;
  copy.write("model.safetensors.index.json",
             R"({"weight_map":{"model.norm.weight":"model-00009-of-00009.safetensors"}})");
  EXPECT_NE(copy.refusal().find("model-00009-of-00009.safetensors"), std::string::npos) << copy.refusal();
}

TEST(ModelFolder, RefusesOneTensorInTwoShards) {
  const model_copy copy;
  fs::copy_file(copy.folder() / "model.safetensors", copy.folder() / "second.safetensors");
  copy.write(
      "model.safetensors.index.json",
      R"({"weight_map":{"model.norm.weight":"model.safetensors","model.embed_tokens.weight":"second.safetensors"}})");
  EXPECT_NE(copy.refusal().find("is also in"), std::string::npos) << copy.refusal();
}

TEST(ModelFolder, RefusesWeightsThatWouldBeIgnored) {
  const std::vector<std::byte> zeros(4 * sizeof(float));
  for (const std::string name :
       {"model.layers.0.mlp.shared_expert.up_proj.weight", "model.layers.0.self_attn.q_proj.bias",
        "model.layers.0.self_attn.q_proj.weight_zero_point", "model.layers.7.input_layernorm.weight"}) {
    const model_copy copy;
    ASSERT_TRUE(write_safetensors(copy.folder() / "more.safetensors", {{name, dtype::f32, {4}, {zeros}}}, {}));
    copy.write("model.safetensors.index.json",
               R"({"weight_map":{"model.norm.weight":"model.safetensors",")" + name + R"(":"more.safetensors"}})");
    EXPECT_NE(copy.refusal().find("'" + name + "': this architecture has no use for it"), std::string::npos)
        << copy.refusal();
  }
}

TEST(ModelFolder, EndsAnswersAtTheTokenizersEndToo) {
  const model_copy copy;
  fs::remove(copy.folder() / "generation_config.json");
  copy.write("tokenizer_config.json", R"({"eos_token":"a"})");
  const auto opened = opened_model::open(copy.folder());
  ASSERT_TRUE(opened) << opened.error().to_string();
  ASSERT_TRUE((*opened)->text().eos());
  const auto& ends = (*opened)->defaults().eos;
  EXPECT_EQ(std::count(ends.begin(), ends.end(), *(*opened)->text().eos()), 1);
}

TEST(Gguf, EndsAnswersAtAUsualEndOfTurnThatTheFileDoesNotName) {
  std::string bytes = contents(fs::path(TROUPE_TEST_DATA) / "models" / "mixtral-q8_0.gguf");
  const std::string key = "tokenizer.ggml.eos_token_id";
  ASSERT_NE(bytes.find(key), std::string::npos);
  bytes.replace(bytes.find(key), key.size(), "tokenizer.ggml.xxx_token_id");
  const scratch_file file;
  file.write(bytes);
  const auto opened = opened_model::open(file.path());
  ASSERT_TRUE(opened) << opened.error().to_string();
  const auto end = (*opened)->text().id_of("<|end|>");
  ASSERT_TRUE(end);
  EXPECT_EQ((*opened)->defaults().eos, std::vector{*end});
}

TEST(ModelFolder, TakesATopKThatIsOff) {
  const model_copy copy;
  copy.write("generation_config.json", R"({"top_k":-1})");
  const auto opened = opened_model::open(copy.folder());
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_EQ((*opened)->defaults().top_k, -1);
  copy.write("generation_config.json", R"({"top_k":-2})");
  EXPECT_NE(copy.refusal().find("top_k"), std::string::npos) << copy.refusal();
}

TEST(ModelFolder, RefusesMoreExpertsPerTokenThanThereAre) {
  auto spec = (*opened_model::open(faults / "control"))->spec();
  ASSERT_TRUE(check_spec(spec, "")) << "a dense model";
  spec.moe.experts = 8;
  spec.moe.top_k = 1U << 30U;
  EXPECT_FALSE(check_spec(spec, "")) << "though no layer is sparse";
}

TEST(ModelFolder, RefusesNormsThatAreNotNumbers) {
  const model_copy copy;
  std::string bytes = contents(copy.folder() / "model.safetensors");
  const auto mapped = mapped_file::open(copy.folder() / "model.safetensors");
  ASSERT_TRUE(mapped);
  tensor_table table;
  ASSERT_TRUE(read_safetensors(*mapped, table));
  const auto& norm = table.at("model.norm.weight");
  const auto at = static_cast<std::size_t>(norm.bytes.data() - mapped->bytes().data());
  bytes[at] = '\xC0';
  bytes[at + 1] = '\x7F';  // a bf16 NaN
  copy.write("model.safetensors", bytes);
  EXPECT_NE(copy.refusal().find("model.norm.weight"), std::string::npos) << copy.refusal();
  EXPECT_NE(copy.refusal().find("NaN"), std::string::npos) << copy.refusal();
}

TEST(ModelFolder, RefusesBiasesThatItsArchitectureWouldIgnore) {
  const model_copy copy(fs::path(TROUPE_TEST_DATA) / "models" / "qwen2");
  copy.replace_in("config.json", "\"Qwen2ForCausalLM\"", "\"LlamaForCausalLM\"");
  EXPECT_NE(copy.refusal().find("_proj.bias"), std::string::npos) << copy.refusal();
}

TEST(ModelFolder, NamesWhatGenerationConfigHasWrong) {
  for (const auto& [text, named] : {std::pair{R"({"temperature":-1})", "temperature"},
                                    {R"({"top_p":"0.9"})", "top_p"},
                                    {R"({"top_k":-3})", "top_k"},
                                    {R"({"eos_token_id":[1,260]})", "eos_token_id"},
                                    {R"({"min_p":0.1,"min_p":0.2})", "min_p"}}) {
    const model_copy copy;
    copy.write("generation_config.json", text);
    EXPECT_NE(copy.refusal().find(named), std::string::npos) << text << ": " << copy.refusal();
    EXPECT_NE(copy.refusal().find("generation_config.json"), std::string::npos) << copy.refusal();
  }
}

TEST(ModelFolder, EndsItsSearchForMissingExpertsSoon) {
  const model_copy copy;
  copy.replace_in("config.json", "\"LlamaForCausalLM\"", "\"MixtralForCausalLM\"");
  copy.replace_in("config.json", "\"num_hidden_layers\":1",
                  "\"num_hidden_layers\":4096,\"num_local_experts\":65535,\"num_experts_per_tok\":2");
  EXPECT_NE(copy.refusal().find("missing"), std::string::npos) << copy.refusal();
  EXPECT_NE(copy.refusal().find("at least"), std::string::npos) << copy.refusal();
}

/// One F32 tensor "a" of two values and one of a type from the future.
std::string with_unknown_type() {
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"F3","shape":[7],"data_offsets":[8,11]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  return bytes + header + std::string(11, '\0');
}

TEST(Safetensors, PassesOverTensorsOfUnknownTypes) {
  const scratch_file file;
  file.write(with_unknown_type());
  const auto mapped = mapped_file::open(file.path());
  ASSERT_TRUE(mapped);
  tensor_table table;
  const auto read = read_safetensors(*mapped, table);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_TRUE(table.at("a").readable);
  EXPECT_FALSE(table.at("b").readable);
  EXPECT_EQ(table.at("b").type_name, "F3");
}

TEST(Model, DigestTellsModelsApartThatDifferInWeightsOnly) {
  const auto digest_of = [](const fs::path& folder) {
    const auto opened = opened_model::open(folder);
    return opened ? (*opened)->digest() : opened.error().to_string();
  };
  const std::string original = digest_of(faults / "control");
  EXPECT_EQ(original.size(), 64U);
  const model_copy copy;
  EXPECT_EQ(digest_of(copy.folder()), original);
  std::string bytes = contents(copy.folder() / "model.safetensors");
  bytes.back() ^= 1;
  copy.write("model.safetensors", bytes);
  EXPECT_NE(digest_of(copy.folder()), original);
}

TEST(Model, IsNoPipe) {
  const model_copy copy;
  fs::remove(copy.folder() / "model.safetensors");
  ASSERT_EQ(::mkfifo((copy.folder() / "model.safetensors").c_str(), 0600), 0);
  EXPECT_NE(copy.refusal().find("regular file"), std::string::npos) << copy.refusal();
}

TEST(Model, ThatDoesNotExistIsNotFound) {
  const auto opened = opened_model::open("/nowhere/at/all");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, error_kind::not_found);
}

}  // namespace
}  // namespace troupe::model
