#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "api/rest/session.h"

namespace gpu_platform::api {

// The open sessions of one worker: owns them until they are closed. Entered and left on its thread,
// counted on any.
class OpenSessions {
 public:
  void add(const std::shared_ptr<Session>& session) {
    const std::lock_guard lock(mutex_);
    entries_.emplace(session.get(), session);
  }
  void remove(Session* session) {
    const std::lock_guard lock(mutex_);
    entries_.erase(session);
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }
  std::vector<std::shared_ptr<Session>> all() const {
    std::vector<std::shared_ptr<Session>> out;
    const std::lock_guard lock(mutex_);
    for (const auto& [key, session] : entries_) out.push_back(session);
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::map<Session*, std::shared_ptr<Session>> entries_;
};

}  // namespace gpu_platform::api
