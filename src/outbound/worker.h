#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "os/descriptor.h"
#include "outbound/outbox.h"
#include "outbound/queue.h"
#include "outbound/sender.h"

namespace gpu_platform::outbound {

// Delivers the messages of one channel, in order, on a thread of its own. Its times are of a clock
// that is never set. Functions: any thread.
class Worker {
 public:
  struct Options {
    base::Duration first_wait;
    base::Duration longest_wait;
    std::function<void(std::string_view)> warn;
  };
  // How a channel did so far: it is handed on where the channel changes.
  struct Tally {
    std::uint64_t sent = 0;
    std::uint64_t refused = 0;
    std::uint64_t dropped = 0;
    std::optional<base::Instant> last_sent;
    std::string problem;
  };

  // The queue outlives this.
  Worker(Channel channel, Queue& queue, Options options, Tally tally);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  // Ends at once also in the middle of a transfer; the message stays in the queue.
  ~Worker();

  const Channel& channel() const { return channel_; }
  // There is a message more, and so many fewer.
  void note_put(std::uint64_t dropped);
  Tally tally() const;

 private:
  void work();
  bool wait_for_turn();
  void deliver_next();
  void take(const Queue::Message& message, const Outcome& outcome);
  void end(const Queue::Message& message);
  void fail(const std::string& problem, base::Duration retry_after);
  void warn(const std::string& line) const;

  const Channel channel_;
  Queue& queue_;
  const Options options_;
  const os::Descriptor stop_;  // an eventfd: readable once the end has come
  Sender sender_;              // of the thread

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool is_ending_ = false;
  bool has_work_ = true;  // what earlier processes have left
  std::chrono::steady_clock::time_point next_try_{};
  Tally tally_;

  base::Duration wait_;                   // after the last failure; 0: there was none
  std::optional<std::int64_t> unmarked_;  // it was sent, and the queue could not note that

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gpu_platform::outbound
