#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "actors/service.hpp"
#include "config/settings.hpp"
#include "net/json/object_reader.hpp"
#include "net/upstream.hpp"

namespace troupe::net {

/// What a codec checks a body against.
struct codec_context {
  const model_facts& model;
  const config::server_settings& limits;
};

/// What every generation API shares, read from its body. `request` lacks the prompt and what the connection knows (ids,
/// deadlines, cancellation).
struct generation_fields {
  actors::generation_request request;
  bool stream = false;
  bool include_usage = false;     ///< A last chunk with the usage.
  bool continuous_usage = false;  ///< Every chunk has the usage so far.
  bool return_token_ids = false;
};

/// Reads sampling, stops, n, max_tokens ("max_tokens" only), streaming and the switches. Left out: the model's own
/// generation defaults, then OpenAI's. Faults go to `in`.
generation_fields read_generation_fields(object_reader& in, const codec_context& context);

/// 404 unless `model` is absent, "", "default" or the served name.
void check_model(object_reader& in, const model_facts& model);

/// Fields that would change the answer and that Troupe does not have: refused by name instead of being ignored.
void refuse_unsupported(object_reader& in);

/// The body as an object, or why it is none.
result<boost::json::object> parse_body(std::string_view text, const codec_context& context);

}  // namespace troupe::net
