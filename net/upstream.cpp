#include "net/upstream.hpp"

#include "model/tokenizer/tokenizer.hpp"
#include "net/server.hpp"

namespace troupe::net {
namespace {

std::optional<model_facts> facts_of(const actors::service& service) {
  const model::opened_model* model = service.model();
  if (!model) return std::nullopt;
  return model_facts{.name = service.served_name(),
                     .max_context = service.max_context(),
                     .vocabulary = model->text().vocab_size(),
                     .has_chat_template = model->chat() != nullptr,
                     .defaults = model->defaults()};
}

std::vector<std::string> texts_of(const actors::service& service, const std::vector<token_id>& ids) {
  std::vector<std::string> texts;
  if (const model::opened_model* model = service.model())
    for (const token_id id : ids) texts.emplace_back(model->text().token_text(id));
  return texts;
}

}  // namespace

upstream upstream_of(actors::service& service) {
  return {.generate = [&](auto request, auto sink) { service.generate(std::move(request), std::move(sink)); },
          .tokenize = [&](auto request, auto terms,
                          auto done) { service.tokenize(std::move(request), std::move(terms), std::move(done)); },
          .detokenize = [&](auto ids, auto terms,
                            auto done) { service.detokenize(std::move(ids), std::move(terms), std::move(done)); },
          .facts = [&] { return facts_of(service); },
          .served_name = [&] { return service.served_name(); },
          .token_texts = [&](const auto& ids) { return texts_of(service, ids); },
          .health = [&] { return service.health(); },
          .experts = [&] { return service.experts(); },
          .metrics = &service.metrics()};
}

result<std::unique_ptr<server>> server::listen(const config::settings& settings, actors::service& service) {
  return listen(settings, upstream_of(service));
}

}  // namespace troupe::net
