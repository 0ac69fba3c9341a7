#include "model/tokenizer/post_processors.hpp"

namespace troupe::model {

std::vector<token_id> run(const std::vector<post_template>& chain, std::vector<token_id> ids, bool add_special) {
  for (const auto& parts : chain) {
    std::vector<token_id> out;
    out.reserve(ids.size() + parts.size());
    for (const auto& part : parts) {
      if (part.text)
        out.insert(out.end(), ids.begin(), ids.end());
      else if (add_special)
        out.insert(out.end(), part.special.begin(), part.special.end());
    }
    ids = std::move(out);
  }
  return ids;
}

}  // namespace troupe::model
