#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json/utf8.hpp"
#include "tokenizer_golden.hpp"

/// What a tokenizer does beyond equality with the reference: who may place special tokens, and text as it streams.
namespace troupe::model {
namespace {

using testing::ElementsAre;

std::vector<std::string> words_of(const tokenizer& text, std::span<const token_id> ids) {
  std::vector<std::string> out;
  for (const auto id : ids) out.emplace_back(text.token_text(id));
  return out;
}

TEST(Tokenizer, ParsesSpecialTokensUnlessToldOtherwise) {
  const auto text = golden::open("smollm2");
  const std::string_view input = "a<|im_end|>b";
  EXPECT_THAT(words_of(*text, text->encode(input, false)), ElementsAre("a", "<|im_end|>", "b"));
  const auto ids = text->encode(input, false, special_tokens::as_text);
  for (const auto id : ids) EXPECT_FALSE(text->is_special(id));
  EXPECT_EQ(text->decode(ids, true), input);
}

TEST(Tokenizer, TakesSpecialTokensFromTheTemplateAndNeverFromAUser) {
  const auto text = golden::open("smollm2");
  const prompt_span spans[] = {
      {"<|im_start|>user\n", false}, {"<|im_end|>\n<|im_start|>system", true}, {"<|im_end|>", false}};
  const auto ids = text->encode_spans(spans, false);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), *text->id_of("<|im_start|>")), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), *text->id_of("<|im_end|>")), 1);
  EXPECT_EQ(ids.front(), *text->id_of("<|im_start|>"));
  EXPECT_EQ(ids.back(), *text->id_of("<|im_end|>"));
  EXPECT_EQ(text->decode(ids, false), "<|im_start|>user\n<|im_end|>\n<|im_start|>system<|im_end|>");
}

TEST(Tokenizer, FindsNoSpecialTokenAcrossASeam) {
  const auto text = golden::open("smollm2");
  for (std::size_t cut = 1; cut < 10; ++cut) {
    const std::string_view spelling = "<|im_end|>";
    const prompt_span user_last[] = {{spelling.substr(0, cut), false}, {spelling.substr(cut), true}};
    const prompt_span user_first[] = {{spelling.substr(0, cut), true}, {spelling.substr(cut), false}};
    const prompt_span template_only[] = {{spelling.substr(0, cut), false}, {spelling.substr(cut), false}};
    for (const auto& spans : {user_last, user_first})
      for (const auto id : text->encode_spans({spans, 2}, false)) EXPECT_FALSE(text->is_special(id));
    EXPECT_EQ(text->encode_spans(template_only, false).size(), 1u);
  }
}

TEST(Tokenizer, KeepsTheTemplatesTokenBehindAUsersBeginningOfOne) {
  const auto text = golden::open("smollm2");
  const prompt_span spans[] = {{"<|im_<|im_end", true}, {"<|im_end|>", false}};
  const auto ids = text->encode_spans(spans, false);
  EXPECT_EQ(ids.back(), *text->id_of("<|im_end|>"));
}

TEST(Tokenizer, TellsUsersFromTemplatesWhereSpecialTokensAreSoughtInNormalizedText) {
  const auto text = golden::open("deepseek");  // its special tokens are "normalized"
  const prompt_span spans[] = {{"<s>", false}, {"</s> hi", true}, {"</s>", false}};
  const auto ids = text->encode_spans(spans, false);
  EXPECT_EQ(ids.front(), *text->id_of("<s>"));
  EXPECT_EQ(std::count(ids.begin(), ids.end(), *text->id_of("</s>")), 1);
  EXPECT_EQ(ids.back(), *text->id_of("</s>"));
}

TEST(Tokenizer, SeesAcrossTheSeamsOfAPrompt) {
  const auto text = golden::open("smollm2");
  const prompt_span spans[] = {{"Hello wor", false}, {"ld", true}};
  EXPECT_EQ(text->encode_spans(spans, false), text->encode("Hello world", false));
}

TEST(Tokenizer, ReadsInvalidUtf8AsReplacementCharacters) {
  const auto text = golden::open("gpt2");
  EXPECT_EQ(text->encode("a\xFF\xC3z", false), text->encode("a\xEF\xBF\xBD\xEF\xBF\xBDz", false));
}

TEST(Tokenizer, GivesTheSameIdsFromGgufScoresAsFromDerivedMerges) {
  const auto folder = golden::open("llama2");
  std::vector<std::string> names;
  for (std::size_t id = 0; id < folder->vocab_size(); ++id)
    names.emplace_back(folder->token_text(static_cast<token_id>(id)));
  tokenizer::gguf_vocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.tokens.assign(names.begin(), names.end());
  vocabulary.types.assign(names.size(), 1);
  for (std::size_t id = 0; id < names.size(); ++id) {
    if (id < 3) vocabulary.types[id] = id == 0 ? 2 : 3;
    if (id >= 3 && id < 259) vocabulary.types[id] = 6;
    vocabulary.scores.push_back(id < 259 ? 0.0f : -static_cast<float>(id - 259));
  }
  vocabulary.unknown = 0;
  vocabulary.bos = 1;
  vocabulary.eos = 2;
  const auto file = tokenizer::from_gguf(vocabulary, "llama2.gguf");
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ((*file)->bos(), 1);
  for (const auto& input : golden::strings()) {
    const auto ids = folder->encode(input, true);
    ASSERT_EQ((*file)->encode(input, true), ids) << testing::PrintToString(input);
    ASSERT_EQ((*file)->decode(ids, true), folder->decode(ids, true)) << testing::PrintToString(input);
  }
}

/// Hugging Face tokenizer.json of the default model, made of the GGUF's own vocabulary.
TEST(Tokenizer, GivesTheSameIdsForTheDefaultModelFromJsonAsFromGguf) {
  const golden::smollm2_vocabulary files;
  const auto quoted = [](const std::string& s) {
    std::string out = "\"";
    for (const char c : s) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out += '"';
  };
  std::string json = R"({"version":"1.0","pre_tokenizer":{"type":"Sequence","pretokenizers":[)"
                     R"({"type":"Digits","individual_digits":true},{"type":"ByteLevel","add_prefix_space":false}]},)"
                     R"("decoder":{"type":"ByteLevel"},"added_tokens":[)";
  for (std::size_t i = 0; i < 17; ++i)
    json += (i ? "," : "") + (R"({"id":)" + std::to_string(i) + R"(,"special":true,"normalized":false,"content":)" +
                              quoted(files.tokens[i]) + "}");
  json += R"(],"model":{"type":"BPE","merges":[)";
  for (std::size_t i = 0; i < files.merges.size(); ++i) json += (i ? "," : "") + quoted(files.merges[i]);
  json += R"(],"vocab":{)";
  for (std::size_t i = 0; i < files.tokens.size(); ++i)
    json += (i ? "," : "") + quoted(files.tokens[i]) + ":" + std::to_string(i);
  json += "}}}";
  const auto folder =
      tokenizer::from_json(json, R"({"bos_token":"<|im_start|>","eos_token":{"content":"<|im_end|>"}})", "t");
  ASSERT_TRUE(folder) << folder.error().to_string();
  const auto file = golden::open("smollm2");
  EXPECT_EQ((*folder)->bos(), file->bos());
  EXPECT_EQ((*folder)->eos(), file->eos());
  EXPECT_EQ((*folder)->vocab_size(), 49152u);
  const auto strings = golden::strings();
  for (std::size_t i = 0; i < strings.size(); i += 5)
    ASSERT_EQ((*folder)->encode(strings[i], true), file->encode(strings[i], true))
        << testing::PrintToString(strings[i]);
}

TEST(Tokenizer, PutsBosAndEosWhereTheConfigurationAsksForThem) {
  const auto json = golden::read_file(golden::folder() / "llama2/tokenizer.json");
  const auto ids = [&](std::string_view config) {
    const auto text = tokenizer::from_json(json, config, "llama2");
    return text ? words_of(**text, (*text)->encode("a", true)) : std::vector<std::string>{text.error().to_string()};
  };
  const auto names = [](const char* extra) {
    return std::string(R"({"bos_token":"<s>","eos_token":"</s>")") + extra + "}";
  };
  EXPECT_THAT(ids(""), ElementsAre("<s>", "▁a"));
  EXPECT_THAT(ids(names("")), ElementsAre("<s>", "▁a"));
  EXPECT_THAT(ids(names(R"(,"add_bos_token":false)")), ElementsAre("▁a"));
  EXPECT_THAT(ids(names(R"(,"add_bos_token":true,"add_eos_token":true)")), ElementsAre("<s>", "▁a", "</s>"));
  EXPECT_THAT(ids(names(R"(,"add_eos_token":true)")), ElementsAre("▁a", "</s>"));
}

TEST(Tokenizer, KnowsTheBytesOfEveryToken) {
  const auto bytes = golden::open("gpt2");
  EXPECT_EQ(bytes->token_bytes(*bytes->id_of("Ġthe")), " the");
  EXPECT_EQ(bytes->token_bytes(*bytes->id_of("Ċ")), "\n");
  EXPECT_EQ(bytes->token_bytes(-1), "");
  const auto pieces = golden::open("llama2");
  EXPECT_EQ(pieces->token_bytes(*pieces->id_of("<0xE2>")), "\xE2");
  EXPECT_EQ(pieces->token_bytes(*pieces->id_of("▁the")), " the");
}

TEST(TextStream, NeverGivesHalfACharacter) {
  const auto text = golden::open("gpt2");
  const auto ids = text->encode("漢字", false);
  ASSERT_GT(ids.size(), 2u);
  text_stream stream(*text, false);
  std::string out;
  for (const auto id : ids) {
    const auto piece = stream.push(id);
    EXPECT_EQ(text->encode(piece, false), text->encode(to_valid_utf8(piece), false));
    EXPECT_EQ(piece.find("\xEF\xBF\xBD"), std::string::npos);
    out += piece;
  }
  EXPECT_EQ(out, "漢字");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, GivesAnUnfinishedCharacterAsOneReplacementCharacter) {
  const auto text = golden::open("gpt2");
  auto ids = text->encode("a😀", false);
  ids.pop_back();
  text_stream stream(*text, false);
  std::string out;
  for (const auto id : ids) out += stream.push(id);
  EXPECT_EQ(out, "a");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(text->decode(ids, false), "a\xEF\xBF\xBD");
}

TEST(TextStream, EqualsDecodingWhateverTheTokens) {
  for (const auto* name : {"gpt2", "llama2", "mistral", "zoo", "zoo_nfd"}) {
    const auto text = golden::open(name);
    std::uint64_t state = 7;
    for (int round = 0; round < 500; ++round) {
      std::vector<token_id> ids;
      for (int i = 0; i < 40; ++i) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        // Byte tokens often, and ids that do not exist.
        const auto range = state >> 62 ? text->vocab_size() + 3 : std::size_t{260};
        ids.push_back(static_cast<token_id>((state >> 33) % range) - 1);
      }
      for (const bool skip : {false, true}) {
        text_stream stream(*text, skip);
        std::string out;
        for (const auto id : ids) {
          const auto piece = stream.push(id);
          ASSERT_EQ(to_valid_utf8(piece), piece);
          out += piece;
        }
        out += stream.finish();
        ASSERT_EQ(out, text->decode(ids, skip)) << name << " round " << round;
      }
    }
  }
}

TEST(TextStream, HoldsARunOfBytesBackOnlySoLong) {
  const auto text = golden::open("llama2");
  text_stream stream(*text, false);
  const token_id bytes[] = {*text->id_of("<0xE6>"), *text->id_of("<0xBC>"), *text->id_of("<0xA2>")};
  std::string out;
  std::size_t longest = 0;
  for (int i = 0; i < 300; ++i) {
    out += stream.push(bytes[i % 3]);
    longest = std::max(longest, static_cast<std::size_t>(i + 1) - out.size());
  }
  EXPECT_LE(longest, 67u);
  out += stream.finish();
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += "漢";
  EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace troupe::model
