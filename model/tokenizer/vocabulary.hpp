#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"

namespace troupe::model {

/// Most ids a vocabulary may span. The largest in use has 262,144.
inline constexpr std::size_t max_vocabulary = 1 << 20;

/// Tokens by id and ids by text. There may be holes among the ids.
class vocabulary {
 public:
  /// False, and nothing changed, if the id is out of bounds, or the id or the text has another partner already.
  bool add(std::string_view text, std::int64_t id) {
    if (id < 0 || id >= static_cast<std::int64_t>(max_vocabulary)) return false;
    const auto index = static_cast<std::size_t>(id);
    if (index < tokens_.size() && tokens_[index].present) return false;
    if (!ids_.try_emplace(std::string(text), static_cast<token_id>(id)).second) return false;
    if (index >= tokens_.size()) tokens_.resize(index + 1);
    // Keys of a node-based map stay where they are.
    tokens_[index] = {ids_.find(text)->first, true};
    return true;
  }

  vocabulary() = default;
  vocabulary(vocabulary&&) = default;
  vocabulary& operator=(vocabulary&&) = default;

  std::optional<token_id> find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  bool has(token_id id) const {
    return id >= 0 && static_cast<std::size_t>(id) < tokens_.size() && tokens_[static_cast<std::size_t>(id)].present;
  }
  /// Empty for a hole.
  std::string_view text(token_id id) const {
    return has(id) ? tokens_[static_cast<std::size_t>(id)].text : std::string_view();
  }
  std::size_t count() const { return ids_.size(); }    ///< Tokens.
  std::size_t span() const { return tokens_.size(); }  ///< The largest id and one.

 private:
  struct token {
    std::string_view text;
    bool present = false;
  };
  struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, token_id, text_hash, std::equal_to<>> ids_;
  std::vector<token> tokens_;
};

}  // namespace troupe::model
