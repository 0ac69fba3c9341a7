#include "model/tokenizer/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <mutex>
#include <new>

#include "model/tokenizer/regex_dialect.hpp"
#include "model/tokenizer/unicode.hpp"

namespace troupe::model {
namespace {

constexpr std::size_t max_pattern_bytes = 64 << 10;
constexpr std::uint32_t match_limit = 50'000'000;   // steps of one match
constexpr std::uint32_t heap_limit_kib = 64 << 10;  // of the interpreter, which runs when the JIT's stack is full
constexpr std::size_t jit_stack_start = 32 << 10;
constexpr std::size_t jit_stack_limit = 4 << 20;

template <auto Free>
struct freed_by {
  void operator()(auto* p) const { Free(p); }
};
using code_ptr = std::unique_ptr<pcre2_code, freed_by<pcre2_code_free>>;
using compile_context_ptr = std::unique_ptr<pcre2_compile_context, freed_by<pcre2_compile_context_free>>;
using match_context_ptr = std::unique_ptr<pcre2_match_context, freed_by<pcre2_match_context_free>>;
using match_data_ptr = std::unique_ptr<pcre2_match_data, freed_by<pcre2_match_data_free>>;
using jit_stack_ptr = std::unique_ptr<pcre2_jit_stack, freed_by<pcre2_jit_stack_free>>;

/// What one running match needs for itself.
struct workspace {
  jit_stack_ptr stack;
  match_context_ptr context;
  match_data_ptr data;
};

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  if (pcre2_get_error_message(code, text, sizeof text) < 0) return "error " + std::to_string(code);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct regex::program {
  code_ptr code;         // by the tables of PCRE2
  code_ptr newest_code;  // by the newest tables; null where there is no difference
  mutable std::mutex mutex;
  mutable std::vector<workspace> idle;

  workspace borrow() const {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto taken = std::move(idle.back());
        idle.pop_back();
        return taken;
      }
    }
    workspace fresh;
    fresh.stack.reset(pcre2_jit_stack_create(jit_stack_start, jit_stack_limit, nullptr));
    fresh.context.reset(pcre2_match_context_create(nullptr));
    fresh.data.reset(pcre2_match_data_create(1, nullptr));
    if (!fresh.context || !fresh.data) throw std::bad_alloc();
    pcre2_set_match_limit(fresh.context.get(), match_limit);
    pcre2_set_heap_limit(fresh.context.get(), heap_limit_kib);
    pcre2_jit_stack_assign(fresh.context.get(), nullptr, fresh.stack.get());
    return fresh;
  }

  void give_back(workspace used) const {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(used));
  }
};

namespace {

result<code_ptr> compile_code(const std::string& pattern, std::string_view place) {
  const compile_context_ptr context(pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int code = 0;
  PCRE2_SIZE offset = 0;
  code_ptr compiled(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &offset,
                                  context.get()));
  if (!compiled)
    return error{error_kind::corrupt, "the regular expression does not compile: " + message_of(code),
                 std::string(place)};
  // Where the JIT cannot take an expression, the interpreter runs it.
  pcre2_jit_compile(compiled.get(), PCRE2_JIT_COMPLETE);
  return compiled;
}

}  // namespace

result<regex> regex::compile(std::string_view pattern, std::string_view place) {
  if (pattern.size() > max_pattern_bytes)
    return error{error_kind::too_large, "the regular expression is longer than 64 KiB", std::string(place)};
  auto built_in = translate_regex(pattern, regex_tables::built_in, place);
  if (!built_in) return std::move(built_in).error();
  auto newest = translate_regex(pattern, regex_tables::newest, place);
  if (!newest) return std::move(newest).error();

  auto compiled = std::make_shared<program>();
  auto code = compile_code(*built_in, place);
  if (!code) return std::move(code).error();
  compiled->code = *std::move(code);
  if (*newest != *built_in) {
    auto newest_code = compile_code(*newest, place);
    if (!newest_code) return std::move(newest_code).error();
    compiled->newest_code = *std::move(newest_code);
  }
  return regex(std::move(compiled));
}

void regex::find_all(std::string_view text, std::vector<text_range>& out) const {
  out.clear();
  auto work = program_->borrow();
  const auto* code =
      program_->newest_code && unicode::has_added_character(text) ? program_->newest_code.get() : program_->code.get();
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const auto* ends = pcre2_get_ovector_pointer(work.data.get());
  std::size_t from = 0;
  std::size_t last_end = text.size() + 1;  // of the match before; none yet
  while (from <= text.size()) {
    int found = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, work.data.get(), work.context.get());
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
      found = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, work.data.get(),
                          work.context.get());
    if (found == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    if (found < 0) break;
    const text_range match{ends[0], ends[1]};
    if (match.begin > match.end) break;  // \K inside a lookahead
    if (match.begin == match.end && match.end == last_end) {
      from += from < text.size() ? unicode::at(text, from).length : 1;
      continue;
    }
    from = last_end = match.end;
    out.push_back(match);
  }
  program_->give_back(std::move(work));
}

}  // namespace troupe::model
