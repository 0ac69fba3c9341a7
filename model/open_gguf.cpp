#include <algorithm>
#include <cmath>

#include "model/files/gguf.hpp"
#include "model/model_parts.hpp"

/// Opens a GGUF file: everything lies in its metadata, tokenizer and chat template included.
namespace troupe::model {
namespace {

result<const architecture*> find_architecture(const gguf_file& file) {
  const auto name = file.text("general.architecture");
  if (!name)
    return error{error_kind::corrupt, "metadata key 'general.architecture' is missing or not a string", file.name()};
  std::string known;
  for (const auto* candidate : architectures()) {
    if (candidate->read_gguf == nullptr) continue;
    if (candidate->gguf_name == *name) return candidate;
    known += (known.empty() ? "" : ", ") + std::string(candidate->gguf_name);
  }
  return error{
      error_kind::unsupported,
      "metadata key 'general.architecture': '" + std::string(*name) + "' is not supported; these are: " + known,
      file.name()};
}

/// Collects the first failure of several reads.
class vocabulary_reader {
 public:
  explicit vocabulary_reader(const gguf_file& file) : file_(file) {}

  template <class T>
  std::optional<T> keep(result<std::optional<T>> read) {
    if (read) return *std::move(read);
    if (!failure_) failure_ = std::move(read).error();
    return std::nullopt;
  }

  std::optional<token_id> id(std::string_view key, std::size_t count) {
    const auto value = keep(file_.unsigned_value(key));
    if (!value) return std::nullopt;
    if (*value < count) return static_cast<token_id>(*value);
    if (!failure_)
      failure_ =
          error{error_kind::corrupt,
                "metadata key '" + std::string(key) + "' is " + std::to_string(*value) + ", past the vocabulary's end",
                file_.name()};
    return std::nullopt;
  }

  std::optional<error>& failure() { return failure_; }

 private:
  const gguf_file& file_;
  std::optional<error> failure_;
};

result<tokenizer::gguf_vocabulary> read_vocabulary(const gguf_file& file) {
  vocabulary_reader reader(file);
  tokenizer::gguf_vocabulary out;
  out.model = file.text("tokenizer.ggml.model").value_or("");
  out.pre = file.text("tokenizer.ggml.pre").value_or("default");
  out.tokens = reader.keep(file.strings("tokenizer.ggml.tokens")).value_or(std::vector<std::string_view>());
  const std::uint64_t count = out.tokens.size();
  for (const double score : reader.keep(file.numbers("tokenizer.ggml.scores", count)).value_or(std::vector<double>()))
    out.scores.push_back(static_cast<float>(score));
  for (const double type :
       reader.keep(file.numbers("tokenizer.ggml.token_type", count)).value_or(std::vector<double>()))
    out.types.push_back(type >= 0 && type < 256 ? static_cast<std::int32_t>(type) : 0);
  auto merges = reader.keep(file.strings("tokenizer.ggml.merges"));
  out.bos = reader.id("tokenizer.ggml.bos_token_id", out.tokens.size());
  out.eos = reader.id("tokenizer.ggml.eos_token_id", out.tokens.size());
  out.unknown = reader.id("tokenizer.ggml.unknown_token_id", out.tokens.size());
  out.add_bos = reader.keep(file.boolean("tokenizer.ggml.add_bos_token"));
  out.add_eos = reader.keep(file.boolean("tokenizer.ggml.add_eos_token"));
  out.add_space_prefix = reader.keep(file.boolean("tokenizer.ggml.add_space_prefix"));
  if (reader.failure()) return std::move(*reader.failure());
  if (out.tokens.empty())
    return error{error_kind::corrupt, "metadata key 'tokenizer.ggml.tokens' is missing or empty", file.name()};
  // No merges at all make every byte a token; a list that is not there is a mistake.
  if (out.model == "gpt2" && !merges)
    return error{error_kind::corrupt, "metadata key 'tokenizer.ggml.merges' is missing", file.name()};
  if (merges) out.merges = *std::move(merges);
  return out;
}

/// How turns end in files that do not say it. Many of 2024 name the end of the text only.
constexpr std::string_view usual_turn_ends[] = {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>"};

/// Tokens that end an answer: the end of the text, of a turn and of a message.
std::vector<token_id> end_tokens(const gguf_file& file, const tokenizer& text) {
  std::vector<token_id> out;
  for (const auto* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    const auto id = file.unsigned_value(key);
    if (id && *id && **id < text.vocab_size()) out.push_back(static_cast<token_id>(**id));
  }
  for (const auto end : usual_turn_ends)
    if (const auto id = text.id_of(end);
        id && text.is_special(*id) && std::find(out.begin(), out.end(), *id) == out.end())
      out.push_back(*id);
  return out;
}

}  // namespace

result<void> opened_model::parts::open_gguf(const std::filesystem::path& path, parts& into) {
  into.name = path.stem().string();
  auto mapped = mapped_file::open(path);
  if (!mapped) return std::move(mapped).error();
  into.files.push_back(*std::move(mapped));
  auto file = gguf_file::read(into.files.back());
  if (!file) return std::move(file).error();

  if (const auto parts_of_it = file->unsigned_value("split.count"); parts_of_it && *parts_of_it && **parts_of_it > 1)
    return error{error_kind::unsupported,
                 "this is one of " + std::to_string(**parts_of_it) +
                     " parts of a split model (metadata key 'split.count'); merge them into one file",
                 path.string()};
  auto family = find_architecture(*file);
  if (!family) return std::move(family).error();
  into.spec.architecture = (*family)->hf_name;
  std::optional<error> failure;
  const gguf_settings settings(*file, std::string((*family)->gguf_name), failure);
  read_common_gguf(settings, into.spec);
  if (!failure) (*family)->read_gguf(settings, into.spec);
  if (failure) return std::move(*failure);
  if (!file->tensors().contains("token_embd.weight"))
    return error{error_kind::not_found, "these tensors are missing: token_embd.weight and probably all others",
                 path.string()};
  if (auto sound = check_spec(into.spec, path.string()); !sound) return sound;

  auto vocabulary = read_vocabulary(*file);
  if (!vocabulary) return std::move(vocabulary).error();
  if (vocabulary->tokens.size() != into.spec.vocab)
    return error{error_kind::corrupt,
                 "metadata key 'tokenizer.ggml.tokens' has " + std::to_string(vocabulary->tokens.size()) +
                     " tokens, but tensor 'token_embd.weight' has " + std::to_string(into.spec.vocab) + " rows",
                 path.string()};
  auto text = tokenizer::from_gguf(*vocabulary, path.string());
  if (!text) return std::move(text).error();
  into.text = *std::move(text);
  into.defaults.eos = end_tokens(*file, *into.text);
  if (const auto source = file->text("tokenizer.chat_template"); source && !into.chat) {
    auto parsed = chat_template::parse(*source, path.string() + ": tokenizer.chat_template");
    if (!parsed) return std::move(parsed).error();
    into.chat = *std::move(parsed);
  }

  digest_builder digest;
  digest.add({reinterpret_cast<const char*>(file->header().data()), file->header().size()});
  digest.add_samples(into.files.back().bytes().subspan(file->header().size()));
  into.digest = digest.finish();
  into.tensors = file->tensors();
  into.weights.emplace(into.spec, into.tensors, std::vector{(*family)->gguf_tensors, common_gguf_tensors()}, 0, 0);
  return {};
}

}  // namespace troupe::model
