#include "bin/retention_thread.h"

#include <pthread.h>

#include <chrono>

#include <spdlog/spdlog.h>

#include "os/clock.h"

namespace gpu_platform::bin {

namespace {

// Between two steps while there is more to do: the loop and the disk are for others, too.
constexpr std::int64_t kPauseMs = 20;
// Between two looks otherwise. It is time enough for the launcher to remove what it was asked for.
constexpr std::int64_t kIntervalMs = 2'000;
// After so many requests in vain the administrator is told.
constexpr int kTimesUntilWarning = 5;

}  // namespace

RetentionThread::RetentionThread(const store::Archive& archive, controller::Loop& loop,
                                 KeptOutputs outputs)
    : loop_(loop),
      outputs_(std::move(outputs)),
      retention_(archive, outputs_.has),
      thread_([this] { work(); }) {
  pthread_setname_np(thread_.native_handle(), "retention");
}

RetentionThread::~RetentionThread() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void RetentionThread::work() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    lock.unlock();
    const base::Duration pause = look();
    lock.lock();
    wake_.wait_for(lock, std::chrono::nanoseconds(pause.value()), [this] { return is_stopping_; });
  }
}

base::Duration RetentionThread::look() {
  const std::shared_ptr<const model::Policy> policy = loop_.snapshot()->policy;
  auto step = retention_.step(*policy, os::wall_now());
  if (!step) {
    spdlog::warn("retention why=\"{}\"", step.error().message);
    return base::minutes(1);
  }
  if (!step->jobs.empty()) {
    spdlog::debug("retention jobs={} first={}", step->jobs.size(), step->jobs.front().value);
    loop_.drop_from_history(std::move(step->jobs));
  }
  if (!step->outputs.empty()) return ask_to_remove(step->outputs);
  asked_.clear();
  return base::milliseconds(step->has_more ? kPauseMs : kIntervalMs);
}

base::Duration RetentionThread::ask_to_remove(const std::vector<model::JobId>& outputs) {
  asked_times_ = outputs == asked_ ? asked_times_ + 1 : 1;
  asked_ = outputs;
  if (asked_times_ == kTimesUntilWarning) {
    spdlog::warn("retention why=\"the output of job {} and {} others is still there\"",
                 outputs.front().value, outputs.size() - 1);
  }
  outputs_.remove(outputs);
  return base::milliseconds(kIntervalMs);
}

}  // namespace gpu_platform::bin
