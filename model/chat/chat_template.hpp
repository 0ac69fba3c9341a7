#pragma once

#include <boost/json/fwd.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace troupe::model {

/// Bounds on one rendering: a template comes with a model file and is not trusted.
struct template_limits {
  std::size_t steps = 2'000'000;        ///< Evaluated nodes.
  std::size_t output_bytes = 16 << 20;  ///< Rendered text, and any one string made on the way.
  /// Text and lists made in one rendering may add up to 8 times this; one text is never longer than 64 MiB.
  std::size_t memory_bytes = 64 << 20;
  std::size_t depth = 128;  ///< Nested calls and expressions.
};

/// Rendered text that remembers which bytes came from the request's strings and which the template wrote, so that user
/// text never spells a special token.
struct rendered_prompt {
  std::string text;
  struct span {
    std::size_t begin, end;
  };
  std::vector<span> from_user;  ///< Ascending, disjoint byte ranges of `text`.
};

/// A Jinja template as chat models ship it, rendered exactly as transformers does with jinja2
/// (ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks, extensions loopcontrols and generation). Immutable; any
/// thread, concurrently.
class chat_template {
 public:
  /// Parses; the error's place holds the template's line.
  static result<std::unique_ptr<const chat_template>> parse(std::string_view source, std::string_view place);

  ~chat_template();
  chat_template(const chat_template&) = delete;
  chat_template& operator=(const chat_template&) = delete;

  /// `variables`: messages, tools, documents, add_generation_prompt, bos_token, ...: an object. `now` is what
  /// strftime_now shows (local time). raise_exception and every error inside become `error_kind::invalid` with the
  /// template's message.
  result<rendered_prompt> render(const boost::json::object& variables, std::chrono::system_clock::time_point now,
                                 const template_limits& limits = {}) const;

  /// The template loops over each message's content and takes no string: give it [{"type": "text", "text": …}].
  bool wants_content_parts() const;

 private:
  struct parts;
  explicit chat_template(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
};

}  // namespace troupe::model
