#pragma once

#include <span>

#include "base/units.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "shims/text/columns.h"
#include "shims/views/billing_weights.h"

// The columns of squeue.

namespace gpu_platform::shims {

struct QueueRow {
  const v1::Job& job;
  base::Instant now;
  std::string_view members = {};            // of a QueueEntry
  const BillingWeights* weights = nullptr;  // null: there are none
};

std::span<const Field<QueueRow>> squeue_fields();

// What a job is sorted by in the column of that letter; nothing for a letter without a column.
struct SortKey {
  double number = 0;
  std::string text;

  auto operator<=>(const SortKey&) const = default;
};
std::optional<SortKey> sort_key(char letter, const QueueRow& row);

}  // namespace gpu_platform::shims
