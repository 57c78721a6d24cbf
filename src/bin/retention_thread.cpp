#include "bin/retention_thread.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>

#include "os/clock.h"

namespace gpu_platform::bin {

RetentionThread::RetentionThread(const store::Archive& archive, controller::Loop& loop,
                                 const execution::AccessRouter& engines, OnDropped on_dropped)
    : loop_(loop),
      engines_(engines),
      on_dropped_(std::move(on_dropped)),
      retention_(archive, [&engines](model::JobId job) { return engines.has_output(job); }),
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
  const controller::RetentionPace::Turn turn =
      pace_.after(*step, base::Instant(os::monotonic_ns()));
  if (turn.is_stuck) {
    spdlog::warn("retention why=\"the output of job {} and {} others is still there\"",
                 step->outputs.front().value, step->outputs.size() - 1);
  }
  if (turn.asks) engines_.remove_output(step->outputs);
  if (!step->jobs.empty()) {
    spdlog::debug("retention jobs={} first={}", step->jobs.size(), step->jobs.front().value);
    if (on_dropped_) on_dropped_(step->jobs);
    loop_.drop_from_history(std::move(step->jobs));
  }
  return turn.pause;
}

}  // namespace gpu_platform::bin
