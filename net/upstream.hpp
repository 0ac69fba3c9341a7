#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/service.hpp"
#include "base/result.hpp"

namespace troupe::net {

/// What codecs need to know of the served model to check a request and to fill in what it leaves out.
struct model_facts {
  std::string name;               ///< As served.
  std::uint32_t max_context = 0;  ///< Prompt and answer together.
  std::size_t vocabulary = 0;     ///< Token ids are below it.
  bool has_chat_template = false;
  model::generation_defaults defaults;
};

/// What the HTTP layer asks of the rest of Troupe: filled from `actors::service`, or scripted in tests. All calls
/// return at once and may be made from any I/O thread; callbacks come from other threads.
struct upstream {
  std::function<void(actors::generation_request, actors::event_sink)> generate;
  std::function<void(actors::tokenize_request, actors::text_terms, std::function<void(result<std::vector<token_id>>)>)>
      tokenize;
  std::function<void(std::vector<token_id>, actors::text_terms, std::function<void(result<std::string>)>)> detokenize;
  std::function<std::optional<model_facts>()> facts;                                  ///< Nothing while loading.
  std::function<std::string()> served_name;                                           ///< Known while loading too.
  std::function<std::vector<std::string>(const std::vector<token_id>&)> token_texts;  ///< As in the vocabulary file.
  std::function<actors::health_report()> health;
  std::function<actors::expert_report()> experts;
  prometheus::Registry* metrics = nullptr;  ///< Never null once filled.
};

/// The calls of `service`, which must outlive them.
upstream upstream_of(actors::service& service);

}  // namespace troupe::net
