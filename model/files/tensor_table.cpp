#include "model/files/tensor_table.hpp"

#include <algorithm>

namespace troupe::model {

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

const claimed_range* find_overlap(std::vector<claimed_range>& ranges) {
  std::erase_if(ranges, [](const claimed_range& r) { return r.begin == r.end; });
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end) return &ranges[i];
  return nullptr;
}

}  // namespace troupe::model
