#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

namespace gpu_platform::host {

// Carries out calls that may hang, on threads of its own. Each call is made for a user, and each
// user has a bounded part of the threads and of the waiting calls: a call that hangs for one user
// keeps no other waiting. The caller gets an answer within the deadline; a call that hangs keeps
// its thread until it returns. Safe from any thread.
class SlowCalls {
 public:
  struct Limits {
    std::size_t threads = 32;
    std::size_t of_user = 2;  // threads that one user's calls may have
    std::size_t waiting_of_user = 32;
    std::size_t waiting = 1024;
    std::chrono::milliseconds deadline{2'000};  // from the question to the answer
  };

  // `what` stands in errors: "the user database".
  SlowCalls(std::string what, Limits limits);
  // Waits for no call that hangs; answers that have not begun are not given any more.
  ~SlowCalls();
  SlowCalls(const SlowCalls&) = delete;
  SlowCalls& operator=(const SlowCalls&) = delete;

  // Calls `end` once, with no lock held: when `work` is done; with kUnavailable when the deadline
  // passes first; with kResourceExhausted, at once, when too much waits already. `work` may go on
  // after that and after the end of this object: it must own all that it touches.
  using End = std::function<void(base::Status)>;
  void run(std::uint32_t user, std::function<void()> work, End end);

  // The same for work that has a result.
  template <class Value>
  void ask(std::uint32_t user, std::function<base::Result<Value>()> question,
           std::function<void(base::Result<Value>)> answer) {
    auto held = std::make_shared<std::optional<base::Result<Value>>>();
    run(
        user, [held, question = std::move(question)] { held->emplace(question()); },
        [held, answer = std::move(answer)](base::Status status) {
          if (!status) return answer(std::unexpected(std::move(status).error()));
          answer(std::move(**held));
        });
  }

 private:
  class State;
  std::shared_ptr<State> state_;  // threads that hang have it too
};

}  // namespace gpu_platform::host
