#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/audit.h"

namespace gpu_platform::model {

enum class AuditOutcome : std::uint8_t { kAny, kOk, kRefused };

// A query of entries. Absent filters match all.
struct AuditQuery {
  std::optional<std::uint32_t> seen_by;  // only what this uid did, or what was done to its jobs
  std::optional<std::string> user;       // the caller
  std::optional<std::string> owner;      // the owner of the jobs
  std::optional<AuditAction> action;
  AuditOutcome outcome = AuditOutcome::kAny;
  std::string code;         // of a refusal; empty: any
  JobId first_job;          // entries that name or submitted one of these; invalid: any
  JobId last_job;           // at least first_job where that is valid
  base::Instant since;      // unset: no bound
  base::Instant until;      // unset: no bound; not included
  EventSeq before;          // only smaller ones (paging); invalid: no bound
  std::size_t limit = 100;  // newest first
  // Entries that a filter skips cost time too: after this number the answer ends, and may be short.
  std::size_t max_looked_at = 50'000;
};

struct AuditPage {
  std::vector<AuditEntry> entries;
  EventSeq next;  // `before` of the next page; invalid: that was all
};

// Returns whether `entry` passes every filter; the limits are not checked.
bool matches(const AuditQuery& query, const AuditEntry& entry);

// Takes entries one after the other, newest first, and says when a page is full.
class AuditPager {
 public:
  explicit AuditPager(const AuditQuery& query) : query_(query) {}

  // Returns false if the page is full: `entry` and all older ones are for the next.
  bool take(AuditEntry entry);
  AuditPage done() { return std::move(page_); }

 private:
  const AuditQuery& query_;
  AuditPage page_;
  EventSeq last_;
  std::size_t looked_at_ = 0;
};

}  // namespace gpu_platform::model
