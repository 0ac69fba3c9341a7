#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "actors/request_context.hpp"

namespace troupe::actors {

/// The requests inside, by id: what a drain waits for, and what is failed when a stage that held it dies.
class request_table {
 public:
  void add(const request_ptr& context) { inside_[context->request.id] = context; }
  void remove(request_id id) { inside_.erase(id); }
  std::size_t size() const { return inside_.size(); }

  /// Fails every request that `stage_name` holds; all of them when it is empty.
  void fail_all(const std::string& stage_name, const error& why);

 private:
  std::unordered_map<request_id, request_ptr> inside_;
};

}  // namespace troupe::actors
