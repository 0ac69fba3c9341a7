#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "actors/request_context.hpp"

namespace troupe::actors {

/// The requests inside: what a drain waits for, and where a request is found again whose stage died. Any thread.
class request_table {
 public:
  void add(const request_ptr& context);
  void remove(const request_context& context);
  bool empty() const;
  std::vector<request_ptr> all() const;

 private:
  mutable std::mutex guard_;
  std::unordered_map<const request_context*, request_ptr> inside_;
};

}  // namespace troupe::actors
