#include "model/chat/chat_template.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <iterator>

#include "model/chat/content_form.hpp"
#include "model/chat/interpreter.hpp"

namespace troupe::model {

struct chat_template::parts {
  std::string place;
  jinja::block program;
  bool content_parts = false;
};

namespace {

/// Variables that the server fills in; all others come with a request.
constexpr std::string_view own_variables[] = {"bos_token", "eos_token", "unk_token", "pad_token",
                                              "add_generation_prompt"};

error to_error(const jinja::failure& problem, const std::string& place) {
  return error{error_kind::invalid, problem.what(),
               place + (problem.line == 0 ? "" : ": line " + std::to_string(problem.line))};
}

std::vector<rendered_prompt::span> user_spans(const jinja::text& rendered) {
  std::vector<rendered_prompt::span> out;
  for (std::size_t at = 0; at < rendered.size(); ++at) {
    if (!rendered.from_user(at)) continue;
    if (!out.empty() && out.back().end == at)
      ++out.back().end;
    else
      out.push_back({at, at + 1});
  }
  return out;
}

}  // namespace

chat_template::chat_template(std::unique_ptr<parts> p) : parts_(std::move(p)) {}
chat_template::~chat_template() = default;

bool chat_template::wants_content_parts() const { return parts_->content_parts; }

result<std::unique_ptr<const chat_template>> chat_template::parse(std::string_view source, std::string_view place) try {
  auto filled = std::make_unique<parts>();
  filled->place = place;
  filled->program = jinja::parse(source);
  filled->content_parts = jinja::needs_content_parts(filled->program);
  return std::unique_ptr<const chat_template>(new chat_template(std::move(filled)));
} catch (const jinja::failure& problem) {
  error failed = to_error(problem, std::string(place));
  failed.kind = error_kind::corrupt;
  return failed;
}

result<rendered_prompt> chat_template::render(const boost::json::object& variables,
                                              std::chrono::system_clock::time_point now,
                                              const template_limits& limits) const try {
  jinja::dictionary given;
  for (const auto& member : variables) {
    const std::string_view name(member.key().data(), member.key().size());
    const bool own = std::find(std::begin(own_variables), std::end(own_variables), name) != std::end(own_variables);
    given.members.emplace_back(jinja::text(name), jinja::from_json(member.value(), !own));
  }
  const jinja::text rendered = jinja::interpreter(limits, now).render(parts_->program, std::move(given));
  return rendered_prompt{rendered.bytes(), user_spans(rendered)};
} catch (const jinja::failure& problem) {
  return to_error(problem, parts_->place);
} catch (const std::bad_alloc&) {
  return error{error_kind::overloaded, "there is not enough memory to render the chat template", parts_->place};
}

}  // namespace troupe::model
