#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "controller/loop/loop.h"
#include "controller/retention.h"
#include "execution/access_router.h"
#include "store/store.h"

namespace gpu_platform::bin {

// Carries out the site's retention policy (controller/retention.h): has the engines remove output,
// and the loop drop jobs from the history. It looks from time to time, so a reloaded policy counts
// within two seconds. A thread of its own; it ends with the object.
class RetentionThread {
 public:
  using OnDropped = std::function<void(std::span<const model::JobId>)>;

  // All outlive it. `on_dropped` hears of jobs that leave the history; may be empty.
  RetentionThread(const store::Archive& archive, controller::Loop& loop,
                  const execution::AccessRouter& engines, OnDropped on_dropped);
  ~RetentionThread();
  RetentionThread(const RetentionThread&) = delete;
  RetentionThread& operator=(const RetentionThread&) = delete;

 private:
  void work();
  // Takes one step; returns how long to wait before the next.
  base::Duration look();

  controller::Loop& loop_;
  const execution::AccessRouter& engines_;
  const OnDropped on_dropped_;
  controller::Retention retention_;
  controller::RetentionPace pace_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace gpu_platform::bin
