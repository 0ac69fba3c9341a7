#include "net/codec/answer.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::net {
namespace {

template <class... Handlers>
struct overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
overloaded(Handlers...) -> overloaded<Handlers...>;

void add(token_usage& total, const actors::generation_done& done) {
  total.prompt += done.prompt_tokens;
  total.completion += done.completion_tokens;
  total.cached += done.cached_tokens;
}

template <class T>
T& at(std::vector<T>& list, std::size_t index) {
  if (list.size() <= index) list.resize(index + 1);
  return list[index];
}

}  // namespace

void answer::stream(std::size_t prompt, const actors::generation_event& event, std::vector<std::string>& out) {
  std::visit(overloaded{
                 [&](const actors::generation_started& e) {
                   running_.prompt += e.prompt_ids.size();
                   stream_started(prompt, e, out);
                 },
                 [&](const actors::generation_delta& e) {
                   running_.completion += e.tokens.size();
                   stream_delta(prompt, e, out);
                 },
                 [&](const actors::generation_finished& e) { stream_finished(prompt, e, out); },
                 [&](const actors::generation_done& e) { add(usage_, e); },
                 [](const actors::generation_failed&) {},
             },
             event);
}

void answer::collect(std::size_t prompt, actors::generation_event event) {
  prompt_answer& record = at(collected_, prompt);
  std::visit(overloaded{
                 [&](actors::generation_started& e) { record.start = std::move(e); },
                 [&](actors::generation_delta& e) {
                   choice_answer& c = at(record.choices, e.choice);
                   c.text += e.text;
                   std::move(e.tokens.begin(), e.tokens.end(), std::back_inserter(c.tokens));
                 },
                 [&](actors::generation_finished& e) { at(record.choices, e.choice).end = e; },
                 [&](actors::generation_done& e) { add(usage_, e); },
                 [](actors::generation_failed&) {},
             },
             event);
}

}  // namespace troupe::net
