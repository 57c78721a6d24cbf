#include "scheduling/quota/quota_ledger.h"

#include <utility>

#include "base/check.h"

namespace gpu_platform::scheduling {

namespace {

__extension__ using Wide = unsigned __int128;

using model::QuotaExcess;
using model::QuotaKind;

constexpr Wide kWhole = 7000;               // of a GPU
constexpr Wide kHour = kWhole * 3'600'000;  // of gpu_time()

std::uint64_t thousandths(Wide value, Wide unit) {
  return static_cast<std::uint64_t>((value * 1000 + unit - 1) / unit);
}

QuotaUse use_of(const QuotaSubject& subject, const QuotaLedger& ledger) {
  const auto found = ledger.uses().find(subject);
  return found == ledger.uses().end() ? QuotaUse() : found->second;
}

// One kind of limit: what there is, what comes to it, and the most there may be.
struct Measure {
  QuotaKind kind;
  const std::optional<std::uint32_t>& limit;
  Wide used;
  Wide asked;
  Wide unit;   // of both
  Wide shown;  // 1000 where people see thousandths, else 1
};

std::optional<QuotaExcess> excess_of(const QuotaLimit& limit, const Measure& measure) {
  if (!measure.limit) return std::nullopt;
  const Wide most = Wide{*measure.limit} * measure.unit;
  if (measure.used + measure.asked <= most) return std::nullopt;
  const auto shown = [&](Wide value) {
    return measure.shown == 1 ? static_cast<std::uint64_t>(value)
                              : thousandths(value, measure.unit);
  };
  return QuotaExcess{limit.subject.holder, limit.subject.name,   measure.kind,
                     shown(measure.used),  shown(measure.asked), shown(most)};
}

Wide gpus(const QuotaUse& use) {
  return static_cast<std::uint64_t>(use.gpus.value());
}

// Of what is used beside what is asked, in the order in which people are told.
std::optional<QuotaExcess> excess_of(const QuotaLimit& limit, const QuotaUse& used,
                                     const QuotaUse& asked) {
  const model::Quota& quota = limit.quota;
  const Measure measures[] = {
      {QuotaKind::kGpus, quota.max_gpus, gpus(used), gpus(asked), kWhole, 1000},
      {QuotaKind::kRunningJobs, quota.max_running_jobs, used.running_jobs, asked.running_jobs, 1,
       1},
      {QuotaKind::kGpuHours, quota.gpu_hours, Wide{used.used} + used.committed, asked.committed,
       kHour, 1000}};
  for (const Measure& measure : measures) {
    // Who asks for nothing of it passes nothing, however much a lowered limit is passed already.
    if (measure.asked == 0) continue;
    if (auto excess = excess_of(limit, measure)) return excess;
  }
  return std::nullopt;
}

}  // namespace

QuotaUse& QuotaUse::operator+=(const QuotaUse& other) {
  gpus += other.gpus;
  running_jobs += other.running_jobs;
  waiting_jobs += other.waiting_jobs;
  committed += other.committed;
  used += other.used;
  return *this;
}

QuotaUse& QuotaUse::operator-=(const QuotaUse& other) {
  CHECK(gpus >= other.gpus && running_jobs >= other.running_jobs &&
        waiting_jobs >= other.waiting_jobs && committed >= other.committed && used >= other.used);
  gpus -= other.gpus;
  running_jobs -= other.running_jobs;
  waiting_jobs -= other.waiting_jobs;
  committed -= other.committed;
  used -= other.used;
  return *this;
}

QuotaUse use_of_start(const model::JobSpec& spec) {
  const base::GpuShare gpus = gpu_share_of(spec.request);
  const base::Duration limit = model::longest_limit(spec.request, spec.time_limit);
  return {.gpus = gpus, .running_jobs = 1, .committed = gpu_time(gpus, limit)};
}

bool QuotaLedger::add(const model::Organisation& organisation, const model::JobSpec& spec,
                      const QuotaUse& use) {
  if (use == QuotaUse()) return false;
  const std::vector<QuotaLimit> limits = limits_of(organisation, spec);
  for (const QuotaLimit& limit : limits) uses_[limit.subject] += use;
  return !limits.empty();
}

bool QuotaLedger::remove(const model::Organisation& organisation, const model::JobSpec& spec,
                         const QuotaUse& use) {
  if (use == QuotaUse()) return false;
  const std::vector<QuotaLimit> limits = limits_of(organisation, spec);
  for (const QuotaLimit& limit : limits) {
    const auto place = uses_.find(limit.subject);
    CHECK(place != uses_.end());
    place->second -= use;
    if (place->second == QuotaUse()) uses_.erase(place);
  }
  return !limits.empty();
}

void QuotaLedger::add_used(const QuotaSubject& subject, std::uint64_t used) {
  if (used != 0) uses_[subject].used += used;
}

std::optional<QuotaExcess> excess_if_started(const model::Organisation& organisation,
                                             const model::JobSpec& spec, const QuotaLedger& ledger,
                                             const QuotaLedger* added) {
  const QuotaUse asked = use_of_start(spec);
  for (const QuotaLimit& limit : limits_of(organisation, spec)) {
    QuotaUse used = use_of(limit.subject, ledger);
    if (added != nullptr) used += use_of(limit.subject, *added);
    if (auto excess = excess_of(limit, used, asked)) return excess;
  }
  return std::nullopt;
}

std::optional<QuotaExcess> excess_if_queued(const model::Organisation& organisation,
                                            const model::JobSpec& spec, const QuotaLedger& ledger) {
  const std::uint64_t asked = spec.array ? model::member_count(*spec.array) : 1;
  for (const QuotaLimit& limit : limits_of(organisation, spec)) {
    const QuotaUse used = use_of(limit.subject, ledger);
    const Measure measure{
        QuotaKind::kQueuedJobs, limit.quota.max_queued_jobs, used.waiting_jobs, asked, 1, 1};
    if (auto excess = excess_of(limit, measure)) return excess;
  }
  return std::nullopt;
}

std::optional<QuotaExcess> excess_of_hours(const model::Organisation& organisation,
                                           const model::JobSpec& spec, const QuotaLedger& ledger,
                                           std::uint64_t more) {
  for (const QuotaLimit& limit : limits_of(organisation, spec)) {
    const QuotaUse used = use_of(limit.subject, ledger);
    if (auto excess = excess_of(limit, used, {.committed = more})) return excess;
  }
  return std::nullopt;
}

std::optional<QuotaExcess> present_excess(const QuotaLimit& limit, const QuotaLedger& ledger) {
  const QuotaUse used = use_of(limit.subject, ledger);
  return excess_of(limit, {},
                   {.gpus = used.gpus,
                    .running_jobs = used.running_jobs,
                    .committed = used.committed + used.used});
}

}  // namespace gpu_platform::scheduling
