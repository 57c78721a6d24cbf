#include "store/audit_batch.h"

#include <algorithm>

#include "model/codec.h"

namespace gpu_platform::store {

AuditKeys keys_of(std::span<const model::AuditEntry> entries) {
  AuditKeys keys;
  for (const model::AuditEntry& entry : entries) {
    const model::AuditedCall& call = entry.call;
    keys.uids.insert(call.by.uid);
    if (call.owner) keys.uids.insert(call.owner->uid);
    // A refused one has submitted nothing.
    const bool submitted = call.action == model::AuditAction::kSubmit && !call.jobs.empty();
    if (!submitted) {
      keys.jobs.insert(call.jobs.begin(), call.jobs.end());
    } else if (!keys.first_submitted.valid()) {
      keys.first_submitted = call.jobs.front();
    }
  }
  return keys;
}

std::vector<model::AuditEntry> audit_entries_of(std::span<const model::EventRecord> events) {
  std::vector<model::AuditEntry> entries;
  for (const model::EventRecord& record : events) {
    if (auto entry = model::audit_entry(record)) entries.push_back(*std::move(entry));
  }
  return entries;
}

std::string encode_entries(std::span<const model::AuditEntry> entries) {
  std::string bytes;
  for (const model::AuditEntry& entry : entries) model::append_audit_entry(entry, bytes);
  return bytes;
}

}  // namespace gpu_platform::store
