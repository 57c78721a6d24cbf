#pragma once

#include <memory>
#include <span>

#include "base/index_by.h"
#include "controller/snapshot.h"
#include "model/event.h"
#include "model/job.h"

// How a published snapshot and what led to it come to those that follow the state.

namespace gpu_platform::controller {

// The jobs that left the core with a batch: one command may end 100,000 of them.
using DepartedJobs = base::IndexBy<model::Job, &model::Job::id>;

// Called on the loop thread after each durable batch; must return quickly.
class PublicationListener {
 public:
  virtual ~PublicationListener() = default;
  // `events` are those of the batch; `departed` the jobs that left the core with it.
  virtual void published(const std::shared_ptr<const Snapshot>& snapshot,
                         std::span<const model::EventRecord> events,
                         const DepartedJobs& departed) = 0;
};

}  // namespace gpu_platform::controller
