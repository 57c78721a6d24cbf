#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "alerts/evaluator.h"
#include "base/units.h"
#include "controller/snapshot.h"
#include "model/gpu_reading.h"
#include "model/node.h"

namespace gpu_platform::bin {

// Returns the latest reading of a GPU; null: there is none.
using ReadingOf = std::function<std::shared_ptr<const model::GpuReading>(std::string_view uuid)>;

// An older reading says nothing about now.
// In seldom intervals it is three of them.
inline constexpr base::Duration kOldestReading = base::minutes(2);

// Makes facts of what is known of nodes. One thread.
class NodeFacts {
 public:
  // What is older than `oldest` counts as unknown.
  explicit NodeFacts(ReadingOf reading_of, base::Duration oldest = kOldestReading)
      : reading_of_(std::move(reading_of)), oldest_(oldest) {}

  std::vector<alerts::Fact> of(const model::Node& node, base::Instant now);

 private:
  std::shared_ptr<const alerts::Subject> subject_of(const model::Node& node, std::size_t index);
  void add_readings(const model::Node& node, std::size_t index, base::Instant now,
                    std::vector<alerts::Fact>& out);

  const ReadingOf reading_of_;
  const base::Duration oldest_;
  std::map<std::string, std::shared_ptr<const alerts::Subject>> subjects_;  // by UUID
};

// Returns the reading if it is of now and the GPU answers; null otherwise.
std::shared_ptr<const model::GpuReading> current(std::shared_ptr<const model::GpuReading> reading,
                                                 base::Instant now, base::Duration oldest);

// How long the job has waited that waits longest of those that wait for resources; 0: none waits.
base::Duration longest_wait(const controller::Snapshot& snapshot, base::Instant now);

// How much of each budget is spent, in percent, cut off. Cost: all jobs if there are budgets.
std::vector<alerts::Fact> budget_facts(const controller::Snapshot& snapshot, base::Instant now);

}  // namespace gpu_platform::bin
