#include "engine/page_pool.hpp"

#include <cassert>

namespace troupe::engine {

page_pool::page_pool(std::uint32_t pages) : references_(pages, 0) {
  free_.reserve(pages);
  for (std::uint32_t i = pages; i > 0; --i) free_.push_back(static_cast<page_index>(i - 1));
}

std::optional<std::vector<page_index>> page_pool::allocate(std::uint32_t count) {
  if (count > free_.size()) return std::nullopt;
  std::vector<page_index> out(free_.end() - count, free_.end());
  free_.resize(free_.size() - count);
  for (const page_index page : out) references_[static_cast<std::uint32_t>(page)] = 1;
  return out;
}

void page_pool::share(page_index page) {
  assert(references_[static_cast<std::uint32_t>(page)] > 0);
  ++references_[static_cast<std::uint32_t>(page)];
}

void page_pool::release(page_index page) {
  auto& count = references_[static_cast<std::uint32_t>(page)];
  assert(count > 0);
  if (--count == 0) free_.push_back(page);
}

void page_pool::release_all(std::vector<page_index>& pages) {
  for (const page_index page : pages) release(page);
  pages.clear();
}

}  // namespace troupe::engine
