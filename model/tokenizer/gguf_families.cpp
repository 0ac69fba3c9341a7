#include "model/tokenizer/gguf_families.hpp"

#include <algorithm>

namespace troupe::model {
namespace {

using text = std::string_view;

// Expressions as the families' own tokenizer.json files have them.
constexpr text gpt2[] = {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};
constexpr text llama3[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr text qwen2[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr text qwen35[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr text tekken[] = {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
                           R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|)"
                           R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr text gpt4o[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr text deepseek_coder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[一-龥ࠀ-一가-퟿]+", R"(\p{N})"};
constexpr text deepseek_llm[] = {
    R"([\r\n])",
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)",
    R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)",
    R"(\s+$)",
    "[一-龥ࠀ-一가-퟿]+",
    R"(\p{N}+)"};
constexpr text deepseek_v3[] = {
    R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr text falcon[] = {R"([\p{P}\$\+<=>\^~\|`]+)", gpt2[0], "[0-9][0-9][0-9]"};
constexpr text bloom[] = {" ?[^(\\s|.,!?…。，、।۔،)]+"};
constexpr text viking[] = {bloom[0], R"(\p{N})"};
constexpr text bailing[] = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr text seed_coder[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr text unnamed[] = {R"([\p{P}\$\+<=>\^~\|]+)", gpt2[0], R"(\p{N}+)", "[0-9][0-9][0-9]"};

constexpr text gpt2_names[] = {"gpt-2",   "gpt2",     "phi-2",    "mpt",     "jais",   "jina-es",    "jina-de",
                               "exaone4", "trillion", "gigachat", "a.x-4.0", "mellum", "modern-bert"};
constexpr text olmo_names[] = {"olmo"};
constexpr text smollm_names[] = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"};
constexpr text llama3_names[] = {"llama-bpe", "llama3",  "llama-v3", "falcon3",
                                 "falcon-h1", "pixtral", "midm-2.0", "lfm2"};
constexpr text dbrx_names[] = {"dbrx", "smaug-bpe", "chatglm-bpe"};
constexpr text glm4_names[] = {"glm4"};
constexpr text qwen2_names[] = {"qwen2", "deepseek-r1-qwen", "hunyuan", "megrez", "grok-2"};
constexpr text stablelm2_names[] = {"stablelm2"};
constexpr text qwen35_names[] = {"qwen35"};
constexpr text tekken_names[] = {"tekken"};
constexpr text gpt4o_names[] = {"gpt-4o", "llama4", "kanana2", "minimax-m2"};
constexpr text deepseek_llm_names[] = {"deepseek-llm"};
constexpr text deepseek_coder_names[] = {"deepseek-coder"};
constexpr text deepseek_v3_names[] = {"deepseek-v3", "hunyuan-dense"};
constexpr text falcon_names[] = {"falcon"};
constexpr text bloom_names[] = {"bloom", "poro-chat", "gpt3-finnish"};
constexpr text viking_names[] = {"viking"};
constexpr text bailing_names[] = {"bailingmoe", "bailingmoe2", "llada-moe"};
constexpr text seed_coder_names[] = {"seed-coder"};
constexpr text unnamed_names[] = {"default", ""};

const gguf_family families[] = {
    {.names = gpt2_names, .expressions = gpt2},
    {.names = olmo_names, .expressions = gpt2, .nfc = true},
    {.names = smollm_names, .expressions = gpt2, .single_digits = true},
    {.names = llama3_names, .expressions = llama3, .ignore_merges = true, .begins_with_bos = true},
    {.names = dbrx_names, .expressions = llama3},
    {.names = glm4_names, .expressions = llama3, .ignore_merges = true},
    {.names = qwen2_names, .expressions = qwen2, .nfc = true},
    {.names = stablelm2_names, .expressions = qwen2},
    {.names = qwen35_names, .expressions = qwen35, .nfc = true},
    {.names = tekken_names, .expressions = tekken, .ignore_merges = true, .begins_with_bos = true},
    {.names = gpt4o_names, .expressions = gpt4o},
    {.names = deepseek_llm_names, .expressions = deepseek_llm},
    {.names = deepseek_coder_names, .expressions = deepseek_coder},
    {.names = deepseek_v3_names, .expressions = deepseek_v3},
    {.names = falcon_names, .expressions = falcon},
    {.names = bloom_names, .expressions = bloom},
    {.names = viking_names, .expressions = viking},
    {.names = bailing_names, .expressions = bailing},
    {.names = seed_coder_names, .expressions = seed_coder},
    {.names = unnamed_names, .expressions = unnamed},
};

}  // namespace

const gguf_family* find_gguf_family(std::string_view pre) {
  const auto found = std::find_if(std::begin(families), std::end(families), [&](const gguf_family& family) {
    return std::find(family.names.begin(), family.names.end(), pre) != family.names.end();
  });
  return found == std::end(families) ? nullptr : &*found;
}

}  // namespace troupe::model
