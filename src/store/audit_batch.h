#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/event.h"

// The audit trail as it is kept: the entries of one batch of events together, so that a batch of
// many submissions costs one record, and keys that lead to it.

namespace gpu_platform::store {

// Batches that leave the archive with one that comes, at most: what went out of time must not make
// a commit slow.
inline constexpr std::size_t kAuditBatchesDropped = 2;

// What leads to a batch of entries.
struct AuditKeys {
  std::set<std::uint32_t> uids;  // the callers and the owners of the jobs
  std::set<model::JobId> jobs;   // named by calls, submissions apart
  // Submissions of one batch are of consecutive ids, so the first leads to all. Invalid: none.
  model::JobId first_submitted;
};
AuditKeys keys_of(std::span<const model::AuditEntry> entries);

// Those that the events of a batch make, ascending.
std::vector<model::AuditEntry> audit_entries_of(std::span<const model::EventRecord> events);

std::string encode_entries(std::span<const model::AuditEntry> entries);

}  // namespace gpu_platform::store
