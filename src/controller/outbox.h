#pragma once

#include <vector>

#include "model/job.h"
#include "model/ledger.h"

namespace gpu_platform::controller {

// What leaves the core with the events that are applied: each is appended to, never read.
struct Outbox {
  std::vector<model::Job>& departed;  // ended, and hold nothing any more
  std::vector<model::LedgerLine>& ledger;
};

// One that keeps what comes; for callers that look at little of it.
struct OwnOutbox {
  std::vector<model::Job> departed;
  std::vector<model::LedgerLine> ledger;

  operator Outbox() { return {departed, ledger}; }  // NOLINT(google-explicit-constructor)
};

}  // namespace gpu_platform::controller
