#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/job.h"
#include "model/quota_excess.h"
#include "model/resource_request.h"
#include "model/team.h"
#include "scheduling/quota/period_use.h"
#include "scheduling/quota/subjects.h"

namespace gpu_platform::scheduling {

// The part of a use that GPUs of one type make up.
struct TypeUse {
  base::GpuShare gpus;
  std::uint64_t committed = 0;  // as of QuotaUse
  std::uint64_t used = 0;

  TypeUse& operator+=(const TypeUse& other);
  TypeUse& operator-=(const TypeUse& other);
  friend bool operator==(const TypeUse&, const TypeUse&) = default;
};

// The present use that counts against a subject's limits.
struct QuotaUse {
  base::GpuShare gpus;             // held
  std::uint64_t running_jobs = 0;  // attempts that hold something
  std::uint64_t waiting_jobs = 0;  // held ones too
  std::uint64_t committed = 0;     // gpu_time() that running attempts may use by their limits
  std::uint64_t used = 0;          // gpu_time() of this period by attempts that are over
  // By the type of the GPUs, of subjects with limits by type; none is zero.
  std::map<std::string, TypeUse> of_types = {};

  QuotaUse& operator+=(const QuotaUse& other);
  QuotaUse& operator-=(const QuotaUse& other);
  friend bool operator==(const QuotaUse&, const QuotaUse&) = default;
};

// Returns the use of all GPUs of a type or of a family.
TypeUse use_of_type(const QuotaUse& use, std::string_view type_or_family);

// Returns the time that the job may run on GPUs of the type. If several of its types name them, it
// is not known which of these it gets them by: the longest.
base::Duration limit_on_type(const model::JobSpec& spec, std::string_view gpu_type);

// Returns what a start of the job adds: until its GPUs are known, the time that it may run is that
// on the slowest type that it accepts.
QuotaUse use_of_start(const model::JobSpec& spec);
// The same where it may run for that time.
QuotaUse use_of_start(const model::JobSpec& spec, base::Duration time_limit);

using QuotaUses = std::map<QuotaSubject, QuotaUse>;

// The usage of all limits. Only subjects with a limit are kept: without limits this costs nothing.
// Ownership: values. Thread: one owner, which reports what happens.
// Cost: O(limits of the job · log subjects), and limits_of().
class QuotaLedger {
 public:
  // Returns true if it counts against some limit. `gpu_type` is the type of the GPUs that it
  // holds; empty if it holds none.
  bool add(const model::Organisation& organisation, const model::JobSpec& spec, const QuotaUse& use,
           std::string_view gpu_type = {});
  bool remove(const model::Organisation& organisation, const model::JobSpec& spec,
              const QuotaUse& use, std::string_view gpu_type = {});

  // Adds what a subject used in this period, as gpu_time(), of GPUs of the type.
  void add_used(const QuotaLimit& limit, std::uint64_t used, std::string_view gpu_type);
  // Adds what all subjects that have limits used.
  void add_used(const model::Organisation& organisation, const PeriodUse& period_use);

  const QuotaUses& uses() const { return uses_; }

  friend bool operator==(const QuotaLedger&, const QuotaLedger&) = default;

 private:
  QuotaUses uses_;  // none empty
};

// Returns the first limit that the job's start would exceed, beside what `ledger` and `added`
// (starts of the same cycle; may be null) hold.
std::optional<model::QuotaExcess> excess_if_started(const model::Organisation& organisation,
                                                    const model::JobSpec& spec,
                                                    const QuotaLedger& ledger,
                                                    const QuotaLedger* added = nullptr);

// The same for the limits by type, if it would get GPUs of this type.
std::optional<model::QuotaExcess> excess_on_type(const model::Organisation& organisation,
                                                 const model::JobSpec& spec,
                                                 std::string_view gpu_type,
                                                 const QuotaLedger& ledger,
                                                 const QuotaLedger* added = nullptr);

// Returns whether the request accepts GPUs of the type, a name of the catalogue or of a driver.
bool accepts_type(const model::ResourceRequest& request, std::string_view gpu_type);

// The types of GPUs that limits by type keep a job from. Without such limits it costs nothing.
struct BarredTypes {
  std::vector<std::string> types;            // of those that it accepts
  std::optional<model::QuotaExcess> excess;  // on the first of them
};
BarredTypes barred_types(const model::Organisation& organisation, const model::JobSpec& spec,
                         const std::map<std::string, std::uint64_t>& gpus_by_type,
                         const QuotaLedger& ledger, const QuotaLedger* added = nullptr);

// Does what excess_if_started() does for one more waiting job; for an array, for all its members.
std::optional<model::QuotaExcess> excess_if_queued(const model::Organisation& organisation,
                                                   const model::JobSpec& spec,
                                                   const QuotaLedger& ledger);

// The same for GPU-hours alone, when the attempts of a job get a longer time limit and commit
// `more` than before.
std::optional<model::QuotaExcess> excess_of_hours(const model::Organisation& organisation,
                                                  const model::JobSpec& spec,
                                                  const QuotaLedger& ledger,
                                                  const QuotaLedger& more);

// Return a limit that is exceeded already, as a lowered limit may be; the second one looks at the
// limits by type that count GPUs of `gpu_type`.
std::optional<model::QuotaExcess> present_excess(const QuotaLimit& limit,
                                                 const QuotaLedger& ledger);
std::optional<model::QuotaExcess> present_excess_on_type(const QuotaLimit& limit,
                                                         std::string_view gpu_type,
                                                         const QuotaLedger& ledger);

}  // namespace gpu_platform::scheduling
