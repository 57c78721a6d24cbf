#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/units.h"
#include "node/probe/probe_protocol.h"

namespace gpu_platform::node {

// A thread of the probe that may get stuck in a driver while others go on. It is never joined:
// objects of this kind live until the process ends by _Exit. The thread starts at the first
// resume().
class DriverThread {
 public:
  // `name` is what the kernel shows of it: 15 letters at most, and it outlives this.
  explicit DriverThread(const char* name) : name_(name) {}
  DriverThread(const DriverThread&) = delete;
  DriverThread& operator=(const DriverThread&) = delete;

  // Calls turn() again and again from now on. Call this and suspend() from the probe's main thread.
  void resume();
  // Has release() called as soon as the thread returns from the driver. Does not wait for that.
  void suspend();

  // Returns how long the thread has been inside the driver, beyond the intended wait. Any thread
  // may call it.
  ThreadSilence silence() const;

 protected:
  ~DriverThread() = default;

  // Makes one round of calls into the driver; returns the pause before the next.
  virtual base::Duration turn() = 0;
  // Closes what turn() opened.
  virtual void release() = 0;
  // turn() calls it between calls into the driver: the next one is meant to take this long.
  void enter(base::Duration expected = {});

 private:
  void loop();
  void pause(base::Duration time);  // or until it is suspended
  void wait_for_resume();

  const char* const name_;
  std::mutex mutex_;  // over the next two
  std::condition_variable changed_;
  std::atomic<bool> is_wanted_ = false;  // written under mutex_
  bool is_started_ = false;
  std::atomic<std::int64_t> entered_ns_ = 0;  // may lie ahead; 0: outside the driver
};

}  // namespace gpu_platform::node
