#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "api/rest/budget.h"
#include "os/descriptor.h"

// Connections between their acceptance and their session.

namespace gpu_platform::api {

// Counts the open connections. Safe from any thread.
class ConnectionCount {
 public:
  void enter() {
    const std::lock_guard lock(mutex_);
    ++total_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --total_;
    if (total_ == 0) all_gone_.notify_all();
  }
  std::size_t total() const {
    const std::lock_guard lock(mutex_);
    return total_;
  }
  void wait_until_all_gone(std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex_);
    all_gone_.wait_for(lock, at_most, [&] { return total_ == 0; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable all_gone_;
  std::size_t total_ = 0;
};

// A connection that waits for its user's name; counted until it is a session's or gone. It may
// outlive the server and its io contexts, so it is no socket of theirs.
struct Newcomer {
  Newcomer(int accepted, const ucred& peer) : descriptor(accepted), credentials(peer) {}
  ~Newcomer() {
    if (descriptor >= 0) ::close(descriptor);
    if (count == nullptr) return;
    budgets->connections.give_back(holder, 1);
    count->leave();
  }
  Newcomer(const Newcomer&) = delete;
  Newcomer& operator=(const Newcomer&) = delete;

  int descriptor;
  ucred credentials;
  Holder holder;                     // the account that it counts for meanwhile
  std::shared_ptr<Budgets> budgets;  // these two where it is counted
  std::shared_ptr<ConnectionCount> count;
};

// Counts the connections of the listener whose user is not known. Safe from any thread.
class Arrivals {
 public:
  explicit Arrivals(std::size_t limit) : limit_(limit) {}
  bool try_enter() {
    if (now_.fetch_add(1) < limit_) return true;
    leave();
    return false;
  }
  void leave() { now_.fetch_sub(1); }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> now_{0};
};

// One of these connections, until it is a session's; it counts until this is gone. It may outlive
// the server and its io contexts.
struct Arrival {
  Arrival(int accepted, std::string from, std::shared_ptr<Arrivals> in)
      : descriptor(accepted), address(std::move(from)), arrivals(std::move(in)) {}
  ~Arrival() { arrivals->leave(); }
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

  os::Descriptor descriptor;
  std::string address;  // of the client
  std::shared_ptr<Arrivals> arrivals;
};

}  // namespace gpu_platform::api
