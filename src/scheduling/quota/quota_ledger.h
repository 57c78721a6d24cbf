#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/units.h"
#include "model/job.h"
#include "model/quota_excess.h"
#include "model/team.h"
#include "scheduling/quota/subjects.h"

namespace gpu_platform::scheduling {

// What counts against a subject's limits now.
struct QuotaUse {
  base::GpuShare gpus;             // held
  std::uint64_t running_jobs = 0;  // attempts that hold something
  std::uint64_t waiting_jobs = 0;  // held back ones too
  std::uint64_t committed = 0;     // gpu_time() that those who run may use by their limits
  std::uint64_t used = 0;          // gpu_time() of this period by those who are gone

  QuotaUse& operator+=(const QuotaUse& other);
  QuotaUse& operator-=(const QuotaUse& other);
  friend bool operator==(const QuotaUse&, const QuotaUse&) = default;
};

// What a start of the job adds.
QuotaUse use_of_start(const model::JobSpec& spec);

using QuotaUses = std::map<QuotaSubject, QuotaUse>;

// The usage of all limits. Only subjects with a limit are kept: without any this costs nothing.
// Ownership: values. Thread: one owner, which reports what happens.
// Cost: O(limits of the job · log subjects), and limits_of().
class QuotaLedger {
 public:
  // True where it counts against some limit.
  bool add(const model::Organisation& organisation, const model::JobSpec& spec,
           const QuotaUse& use);
  bool remove(const model::Organisation& organisation, const model::JobSpec& spec,
              const QuotaUse& use);

  // What one subject used in this period, as gpu_time().
  void add_used(const QuotaSubject& subject, std::uint64_t used);

  const QuotaUses& uses() const { return uses_; }

  friend bool operator==(const QuotaLedger&, const QuotaLedger&) = default;

 private:
  QuotaUses uses_;  // none empty
};

// The first limit that the job's start would pass, beside what `ledger` and `added` (starts of the
// same cycle; may be null) have.
std::optional<model::QuotaExcess> excess_if_started(const model::Organisation& organisation,
                                                    const model::JobSpec& spec,
                                                    const QuotaLedger& ledger,
                                                    const QuotaLedger* added = nullptr);

// The same for one more job that waits; of an array, for all its members.
std::optional<model::QuotaExcess> excess_if_queued(const model::Organisation& organisation,
                                                   const model::JobSpec& spec,
                                                   const QuotaLedger& ledger);

// The same for more GPU-hours alone: a running job's longer time limit.
std::optional<model::QuotaExcess> excess_of_hours(const model::Organisation& organisation,
                                                  const model::JobSpec& spec,
                                                  const QuotaLedger& ledger, std::uint64_t more);

// A limit that is passed as things are; a lowered limit may be.
std::optional<model::QuotaExcess> present_excess(const QuotaLimit& limit,
                                                 const QuotaLedger& ledger);

}  // namespace gpu_platform::scheduling
