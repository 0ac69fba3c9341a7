#include "model/files/gguf_types.hpp"

namespace troupe::model {
namespace {

constexpr ggml_type ggml_types[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
};

}  // namespace

const ggml_type* find_ggml_type(std::uint32_t number) {
  for (const auto& type : ggml_types)
    if (type.number == number) return &type;
  return nullptr;
}

std::optional<std::uint32_t> ggml_type_number(dtype type) {
  for (const auto& candidate : ggml_types)
    if (candidate.name == traits(type).name) return candidate.number;
  return std::nullopt;
}

std::uint64_t fixed_size(gguf_type type) {
  switch (type) {
    case gguf_type::u8:
    case gguf_type::i8:
    case gguf_type::boolean:
      return 1;
    case gguf_type::u16:
    case gguf_type::i16:
      return 2;
    case gguf_type::u32:
    case gguf_type::i32:
    case gguf_type::f32:
      return 4;
    case gguf_type::u64:
    case gguf_type::i64:
    case gguf_type::f64:
      return 8;
    case gguf_type::string:
    case gguf_type::array:
      return 0;
  }
  return 0;
}

gguf_value load_scalar(gguf_type type, const std::byte* from) {
  switch (type) {
    case gguf_type::u8:
      return std::uint64_t{load<std::uint8_t>(from)};
    case gguf_type::u16:
      return std::uint64_t{load<std::uint16_t>(from)};
    case gguf_type::u32:
      return std::uint64_t{load<std::uint32_t>(from)};
    case gguf_type::u64:
      return load<std::uint64_t>(from);
    case gguf_type::i8:
      return std::int64_t{load<std::int8_t>(from)};
    case gguf_type::i16:
      return std::int64_t{load<std::int16_t>(from)};
    case gguf_type::i32:
      return std::int64_t{load<std::int32_t>(from)};
    case gguf_type::i64:
      return load<std::int64_t>(from);
    case gguf_type::f32:
      return double{load<float>(from)};
    case gguf_type::f64:
      return load<double>(from);
    case gguf_type::boolean:
      return load<std::uint8_t>(from) != 0;
    case gguf_type::string:
    case gguf_type::array:
      break;
  }
  return std::uint64_t{0};
}

}  // namespace troupe::model
