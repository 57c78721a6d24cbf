#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "gpu_platform/v1/reservations.pb.h"
#include "shims/views/job_view.h"
#include "shims/views/node_view.h"
#include "shims/views/partitions.h"
#include "shims/views/step_view.h"

// The records of "scontrol show". Pure, except for the user database.

namespace gpu_platform::shims {

std::string job_page(const QueueEntry& entry, const BillingWeights& weights, bool is_one_line,
                     base::Instant now);
// With -d: the exit codes of its steps, and what it has on each of its nodes. `nodes`: all.
std::string detailed_job_page(const QueueEntry& entry, const BillingWeights& weights,
                              const std::vector<NodeView>& nodes, bool is_one_line,
                              base::Instant now);
std::string node_page(const NodeView& node, const Site& site, bool is_one_line);
std::string partition_page(const Partition& partition, const BillingWeights& weights,
                           const std::vector<NodeView>& nodes, bool is_one_line);
std::string reservation_page(const v1::Reservation& reservation, const std::vector<NodeView>& nodes,
                             bool is_one_line);
std::string step_page(const v1::Job& job, const StepView& step, bool is_one_line);
std::string config_page(base::Instant now, const std::string& host);

}  // namespace gpu_platform::shims
