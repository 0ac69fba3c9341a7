#include "base/json/strict_json.hpp"

#include <boost/json/array.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/error.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value_stack.hpp>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "base/json/utf8.hpp"

namespace troupe {
namespace {

namespace json = boost::json;
using json::error_code;
using json::string_view;

/// Where the parser is: one frame for each open array or object.
struct frame {
  bool is_array = false;
  std::size_t index = 0;       ///< Arrays: of the element being read.
  std::string key;             ///< Objects: of the member being read.
  std::set<std::string> keys;  ///< A tree: its time does not depend on what keys a client chooses.
};

/// Builds the value and keeps the path, as basic_parser's events arrive.
class value_builder {
 public:
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();

  explicit value_builder(std::size_t max_members) : max_members_(max_members) {}

  static constexpr auto stop = json::error::exception;  // Any code: `complaint` says what it was.

  bool on_document_begin(error_code&) {
    stack_.reset();
    return true;
  }
  bool on_document_end(error_code&) { return true; }

  bool on_array_begin(error_code&) {
    frames_.push_back({.is_array = true, .index = 0, .key = {}, .keys = {}});
    return true;
  }
  bool on_array_end(std::size_t n, error_code&) {
    stack_.push_array(n);
    frames_.pop_back();
    return value_done();
  }
  bool on_object_begin(error_code&) {
    frames_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t n, error_code&) {
    stack_.push_object(n);
    frames_.pop_back();
    return value_done();
  }

  bool on_key_part(string_view part, std::size_t, error_code&) {
    stack_.push_chars(part);
    key_part_ += std::string_view(part.data(), part.size());
    return true;
  }
  bool on_key(string_view rest, std::size_t, error_code& ec) {
    stack_.push_key(rest);
    key_part_ += std::string_view(rest.data(), rest.size());
    frame& open = frames_.back();
    open.key = std::move(key_part_);
    key_part_.clear();
    if (!open.keys.insert(open.key).second) return refuse("the key appears twice", ec);
    if (open.keys.size() <= max_members_) return true;
    return refuse("a JSON object has more than " + std::to_string(max_members_) + " members", ec);
  }
  bool on_string_part(string_view part, std::size_t, error_code&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(string_view rest, std::size_t, error_code&) {
    stack_.push_string(rest);
    return value_done();
  }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(std::int64_t value, string_view, error_code&) {
    stack_.push_int64(value);
    return value_done();
  }
  bool on_uint64(std::uint64_t value, string_view, error_code&) {
    stack_.push_uint64(value);
    return value_done();
  }
  bool on_double(double value, string_view, error_code& ec) {
    if (!std::isfinite(value)) return refuse("the number is too large", ec);
    stack_.push_double(value);
    return value_done();
  }
  bool on_bool(bool value, error_code&) {
    stack_.push_bool(value);
    return value_done();
  }
  bool on_null(error_code&) {
    stack_.push_null();
    return value_done();
  }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

  json::value take() { return stack_.release(); }
  const std::string& complaint() const { return complaint_; }

  /// "messages[0].content"; shortened where it is absurdly long.
  std::string path() const {
    std::string path;
    for (const frame& open : frames_) {
      if (open.is_array) {
        path += "[" + std::to_string(open.index) + "]";
      } else if (!open.key.empty()) {
        if (!path.empty()) path += ".";
        path += open.key;
      }
      if (path.size() > 200) return to_valid_utf8(path.substr(0, 200)) + "...";
    }
    return to_valid_utf8(path);
  }

 private:
  bool value_done() {
    if (!frames_.empty() && frames_.back().is_array) ++frames_.back().index;
    return true;
  }
  bool refuse(std::string complaint, error_code& ec) {
    complaint_ = std::move(complaint);
    ec = stop;
    return false;
  }

  std::size_t max_members_;
  json::value_stack stack_;
  std::vector<frame> frames_;
  std::string key_part_;
  std::string complaint_;
};

std::string explain(std::string_view text, std::size_t offset, const error_code& ec, std::size_t max_depth) {
  if (ec == json::error::too_deep) return "JSON is nested deeper than " + std::to_string(max_depth) + " levels";
  if (ec == json::error::incomplete) return "the JSON text ends too early";
  if (ec == json::error::extra_data) return "there is something after the JSON value";
  if (ec == json::error::exponent_overflow)
    return "a number has too large an exponent at byte " + std::to_string(offset);
  if (const std::size_t good = valid_utf8_prefix(text); good < text.size() && good <= offset + 4)
    return "the text is not valid UTF-8 at byte " + std::to_string(good);
  const std::size_t from = offset < 8 ? 0 : offset - 8;
  const std::string_view near = text.substr(from, 12);
  const bool surrogate = near.find("\\ud") != near.npos || near.find("\\uD") != near.npos;
  if (surrogate) return "half of a surrogate pair without the other at byte " + std::to_string(offset);
  return "not valid JSON at byte " + std::to_string(offset);
}

}  // namespace

result<json::value> parse_json(std::string_view text, std::size_t max_depth, std::size_t max_members) {
  json::parse_options options;
  options.max_depth = max_depth;
  json::basic_parser<value_builder> parser(options, max_members);
  error_code ec;
  std::size_t used = 0;
  try {
    used = parser.write_some(false, text.data(), text.size(), ec);
  } catch (const std::exception& failure) {
    return error{error_kind::invalid, std::string("JSON cannot be read: ") + failure.what(), {}};
  }
  if (!ec && used < text.size()) ec = json::error::extra_data;
  const auto& builder = parser.handler();
  if (!ec) return parser.handler().take();
  if (!builder.complaint().empty()) return error{error_kind::invalid, builder.complaint(), builder.path()};
  // Where the text ends is no fault of the field that it ends in.
  return error{error_kind::invalid, explain(text, used, ec, max_depth),
               ec == json::error::incomplete ? std::string() : builder.path()};
}

}  // namespace troupe
