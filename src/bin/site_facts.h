#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "alerts/evaluator.h"
#include "base/units.h"
#include "controller/snapshot.h"
#include "outbound/outbox.h"
#include "telemetry/history.h"

namespace gpu_platform::bin {

// Makes facts of what is of no node and no job: the queue, the budgets, the disk, the history, the
// certificate of the API, and the channels. One thread.
class SiteFacts {
 public:
  struct Options {
    std::string data_dir;
    const telemetry::History* history = nullptr;     // null: there is none; outlives the object
    std::function<base::Instant()> certificate_end;  // empty or not set: there is no certificate
  };
  explicit SiteFacts(Options options) : options_(std::move(options)) {}

  // The end of the certificate is looked up each ten minutes.
  std::vector<alerts::Fact> of(const controller::Snapshot& snapshot,
                               std::span<const outbound::ChannelState> channels,
                               alerts::Moment now);

 private:
  alerts::Fact certificate(alerts::Moment now);

  const Options options_;
  base::Instant certificate_looked_;  // on the steady clock
  base::Instant certificate_end_;
};

}  // namespace gpu_platform::bin
