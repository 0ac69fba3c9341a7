#include "net/codec/generation_fields.hpp"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <limits>
#include <random>

#include "base/json/strict_json.hpp"

namespace troupe::net {
namespace {

namespace json = boost::json;

constexpr std::size_t max_stop_bytes = 4096;
constexpr std::size_t max_bias_entries = 1024;
constexpr std::size_t max_stop_ids = 1024;
constexpr std::int64_t max_count = std::numeric_limits<std::int32_t>::max();
constexpr int max_logprobs = 20;

std::vector<std::string> read_stops(object_reader& in, std::uint32_t most) {
  const json::value* value = in.any("stop");
  if (!value) return {};
  std::vector<std::string> stops;
  const auto add = [&](const json::value& one, const std::string& place) {
    if (!one.is_string() || one.get_string().empty()) {
      in.fail(place, "must be a string that is not empty");
    } else if (one.get_string().size() > max_stop_bytes) {
      in.fail(place, "must have at most " + std::to_string(max_stop_bytes) + " bytes");
    } else {
      stops.emplace_back(one.get_string());
    }
  };
  if (!value->is_array()) {
    add(*value, "stop");
    return stops;
  }
  if (value->get_array().size() > most) {
    in.fail("stop", "must have at most " + std::to_string(most) + " entries");
    return {};
  }
  std::size_t index = 0;
  for (const json::value& one : value->get_array()) add(one, "stop[" + std::to_string(index++) + "]");
  return stops;
}

/// Keys are ids in plain decimal: "5", not "05", "+5" or "5 ".
std::optional<token_id> bias_key(std::string_view key, std::size_t vocabulary) {
  token_id id = 0;
  const auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), id);
  const bool plain = failure == std::errc{} && end == key.data() + key.size() && std::to_string(id) == key;
  if (!plain || id < 0 || static_cast<std::size_t>(id) >= vocabulary) return std::nullopt;
  return id;
}

std::vector<std::pair<token_id, float>> read_bias(object_reader& in, std::size_t vocabulary) {
  const json::object* given = in.object("logit_bias");
  if (!given) return {};
  if (given->size() > max_bias_entries) {
    in.fail("logit_bias", "must have at most " + std::to_string(max_bias_entries) + " entries");
    return {};
  }
  std::vector<std::pair<token_id, float>> bias;
  object_reader values(*given, "logit_bias");
  for (const auto& [key, value] : *given) {
    const auto id = bias_key({key.data(), key.size()}, vocabulary);
    if (!id) {
      in.fail("logit_bias", "the key '" + std::string(key).substr(0, 40) + "' must be a token id from 0 to " +
                                std::to_string(vocabulary ? vocabulary - 1 : 0));
      return {};
    }
    if (value.is_null()) values.fail({key.data(), key.size()}, "must be a number from -100 to 100, but is null");
    bias.emplace_back(*id, static_cast<float>(values.number({key.data(), key.size()}, -100, 100).value_or(0)));
  }
  if (values.failure()) in.fail(*values.failure());
  return bias;
}

std::uint64_t fresh_seed() {
  thread_local std::mt19937_64 source{(std::uint64_t{std::random_device{}()} << 32) ^ std::random_device{}()};
  return source();
}

model::sampling_params read_sampling(object_reader& in, const codec_context& context) {
  const auto& defaults = context.model.defaults;
  const std::size_t vocabulary = context.model.vocabulary;
  model::sampling_params p;
  p.temperature = in.number("temperature", 0, 2).value_or(defaults.temperature.value_or(1.0));
  p.top_k = static_cast<int>(in.integer("top_k", -1, max_count).value_or(defaults.top_k.value_or(0)));
  p.top_p = in.number("top_p", 0, 1).value_or(defaults.top_p.value_or(1.0));
  p.min_p = in.number("min_p", 0, 1).value_or(defaults.min_p.value_or(0.0));
  p.typical_p = in.number("typical_p", 0, 1).value_or(1.0);
  p.repetition_penalty = in.number("repetition_penalty", 0.01, 100).value_or(defaults.repetition_penalty.value_or(1.0));
  p.presence_penalty = in.number("presence_penalty", -2, 2).value_or(0.0);
  p.frequency_penalty = in.number("frequency_penalty", -2, 2).value_or(0.0);
  p.logit_bias = read_bias(in, vocabulary);
  p.min_tokens = static_cast<std::uint32_t>(in.integer("min_tokens", 0, max_count).value_or(0));
  p.ignore_eos = in.boolean("ignore_eos").value_or(false);
  return p;
}

/// Without a seed two equal requests differ on purpose: such an answer is neither kept nor taken from the cache.
void read_seed(object_reader& in, actors::generation_request& request) {
  using limits = std::numeric_limits<std::int64_t>;
  const auto seed = in.integer("seed", limits::min(), limits::max());
  const bool greedy = request.sampling.greedy();
  if (seed) {
    request.sampling.seed = static_cast<std::uint64_t>(*seed);
  } else if (!greedy) {
    request.sampling.seed = fresh_seed();
    request.use_cache = request.store_in_cache = false;
  }
}

void read_streaming(object_reader& in, generation_fields& out) {
  out.stream = in.boolean("stream").value_or(false);
  const json::object* options = in.object("stream_options");
  if (!options) return;
  if (!out.stream) in.fail("stream_options", "is only allowed with \"stream\": true");
  object_reader fields(*options, "stream_options");
  out.include_usage = fields.boolean("include_usage").value_or(false);
  out.continuous_usage = fields.boolean("continuous_usage_stats").value_or(false);
  if (fields.failure()) in.fail(*fields.failure());
}

}  // namespace

generation_fields read_generation_fields(object_reader& in, const codec_context& context) {
  check_model(in, context.model);
  generation_fields out;
  actors::generation_request& request = out.request;
  request.sampling = read_sampling(in, context);
  read_seed(in, request);
  request.n = static_cast<std::uint32_t>(in.integer("n", 1, context.limits.max_n).value_or(1));
  if (const auto most = in.integer("max_tokens", 0, max_count)) request.max_tokens = static_cast<std::uint32_t>(*most);
  request.stop = read_stops(in, context.limits.max_stops);
  request.stop_token_ids = in.ids("stop_token_ids", context.model.vocabulary).value_or(std::vector<token_id>{});
  if (request.stop_token_ids.size() > max_stop_ids)
    in.fail("stop_token_ids", "must have at most " + std::to_string(max_stop_ids) + " entries");
  request.prompt_logprobs = static_cast<int>(in.integer("prompt_logprobs", 0, max_logprobs).value_or(-1));
  request.skip_special_tokens = in.boolean("skip_special_tokens").value_or(true);
  request.parse_special_tokens = in.boolean("parse_special_tokens").value_or(true);
  out.return_token_ids = in.boolean("return_token_ids").value_or(false);
  read_streaming(in, out);
  refuse_unsupported(in);
  return out;
}

void check_model(object_reader& in, const model_facts& model) {
  const auto name = in.text("model");
  if (!name || name->empty() || *name == "default" || *name == model.name) return;
  in.fail(error{error_kind::not_found,
                "the model '" + name->substr(0, 100) + "' does not exist; this server has '" + model.name + "'",
                "model"});
}

void refuse_unsupported(object_reader& in) {
  static constexpr std::array names{"allowed_token_ids",
                                    "audio",
                                    "bad_words",
                                    "cache_salt",
                                    "dry_multiplier",
                                    "function_call",
                                    "functions",
                                    "grammar",
                                    "guided_choice",
                                    "guided_grammar",
                                    "guided_json",
                                    "guided_regex",
                                    "include_stop_str_in_output",
                                    "json_schema",
                                    "logits_processors",
                                    "mirostat",
                                    "n_predict",
                                    "prompt_embeds",
                                    "repeat_penalty",
                                    "structured_outputs",
                                    "suffix",
                                    "truncate_prompt_tokens",
                                    "use_beam_search",
                                    "web_search_options",
                                    "xtc_probability"};
  const auto refuse = [&](const char* name) {
    in.fail(error{error_kind::unsupported, "this server does not support it", in.place_of(name)});
  };
  for (const char* name : names)
    if (const json::value* asked = in.any(name); asked && *asked != false) refuse(name);
  if (const json::value* text = in.any("detokenize"); text && *text == false) refuse("detokenize");
  if (const json::object* format = in.object("response_format")) {
    object_reader fields(*format, "response_format");
    const auto type = fields.text("type");
    if (fields.failure()) in.fail(*fields.failure());
    if (!type) in.fail("response_format.type", "is required");
    if (type && *type != "text")
      in.fail(error{error_kind::unsupported, "only \"text\" is supported, not '" + type->substr(0, 40) + "'",
                    "response_format.type"});
  }
}

result<json::object> parse_body(std::string_view text, const codec_context& context) {
  auto parsed = parse_json(text, context.limits.max_json_depth);
  if (!parsed) return parsed.error();
  if (!parsed->is_object())
    return error{error_kind::invalid, "the body must be a JSON object, but is " + std::string(kind_name(*parsed)), {}};
  return std::move(parsed->get_object());
}

}  // namespace troupe::net
