#include "node/probe/driver_thread.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "os/clock.h"

namespace gpu_platform::node {

void DriverThread::resume() {
  const std::lock_guard lock(mutex_);
  is_wanted_ = true;
  if (is_started_) {
    changed_.notify_all();
  } else {
    is_started_ = true;
    std::thread([this] { loop(); }).detach();
  }
}

void DriverThread::suspend() {
  const std::lock_guard lock(mutex_);
  is_wanted_ = false;
  changed_.notify_all();
}

ThreadSilence DriverThread::silence() const {
  const std::int64_t entered = entered_ns_;
  if (entered == 0) return is_wanted_ ? ThreadSilence(0) : std::nullopt;
  const std::int64_t ms = std::max<std::int64_t>(os::boot_ns() - entered, 0) / 1'000'000;
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>(ms, std::numeric_limits<std::uint32_t>::max()));
}

void DriverThread::enter(base::Duration expected) {
  entered_ns_ = os::boot_ns() + expected.value();
}

void DriverThread::loop() {
  pthread_setname_np(pthread_self(), name_);
  while (true) {
    enter();
    const bool has_turn = is_wanted_;
    base::Duration rest;
    if (has_turn) {
      rest = turn();
    } else {
      release();
    }
    entered_ns_ = 0;
    if (has_turn) {
      pause(rest);
    } else {
      wait_for_resume();
    }
  }
}

void DriverThread::pause(base::Duration time) {
  if (time.value() <= 0) return;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(time.value()), [&] { return !is_wanted_; });
}

void DriverThread::wait_for_resume() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_wanted_.load(); });
}

}  // namespace gpu_platform::node
