#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace gpu_platform::client {

// A file system that does not answer holds every process that looks at it. A command gives up after
// this time and goes on without what it wanted to see.
inline constexpr std::chrono::seconds kLookTimeout{2};

// Calls look(path) in a thread of its own and returns what it found; nothing where it did not come
// back in time. That thread is left behind, and ends with the process. `look` keeps no reference.
template <class Look>
auto timed_look(Look look, std::string path, std::chrono::milliseconds timeout = kLookTimeout)
    -> std::optional<decltype(look(path))> {
  struct Shared {
    std::mutex mutex;
    std::condition_variable is_done;
    std::optional<decltype(look(path))> found;
  };
  auto shared = std::make_shared<Shared>();
  std::thread([shared, look = std::move(look), path = std::move(path)] {
    auto found = look(path);
    const std::lock_guard lock(shared->mutex);
    shared->found.emplace(std::move(found));
    shared->is_done.notify_one();
  }).detach();
  std::unique_lock lock(shared->mutex);
  if (!shared->is_done.wait_for(lock, timeout, [&] { return shared->found.has_value(); })) {
    return std::nullopt;
  }
  return std::move(shared->found);
}

}  // namespace gpu_platform::client
