#include "scheduling/quota/quota_ledger.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "model/gpu_catalogue.h"
#include "model/job_spec.h"

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

// One kind of limit: the present use, what the job adds, and the limit itself.
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

// What the use counts against this limit.
QuotaUse counted(const QuotaLimit& limit, const QuotaUse& use, std::string_view gpu_type) {
  QuotaUse counted = use;
  const TypeUse of_type{use.gpus, use.committed, use.used};
  if (gpu_type.empty() || limit.quota.gpu_types.empty() || of_type == TypeUse()) return counted;
  counted.of_types.emplace(gpu_type, of_type);
  return counted;
}

std::optional<QuotaExcess> excess_of(const QuotaLimit& limit, const model::TypeQuota& quota,
                                     const TypeUse& used, const TypeUse& asked) {
  const auto gpus = [](const TypeUse& use) { return static_cast<std::uint64_t>(use.gpus.value()); };
  const Measure measures[] = {
      {QuotaKind::kGpus, quota.max_gpus, gpus(used), gpus(asked), kWhole, 1000},
      {QuotaKind::kGpuHours, quota.gpu_hours, Wide{used.used} + used.committed, asked.committed,
       kHour, 1000}};
  for (const Measure& measure : measures) {
    if (measure.asked == 0) continue;
    auto excess = excess_of(limit, measure);
    if (!excess) continue;
    excess->gpu_type = quota.type;
    return excess;
  }
  return std::nullopt;
}

}  // namespace

base::Duration limit_on_type(const model::JobSpec& spec, std::string_view gpu_type) {
  const model::ResourceRequest& request = spec.request;
  if (request.gpu_speeds.empty()) return spec.time_limit;
  std::optional<std::uint32_t> slowest;
  for (std::size_t i = 0; i < request.gpu_types.size(); ++i) {
    if (!model::gpu_type_matches(request.gpu_types[i], gpu_type)) continue;
    slowest = std::min(slowest.value_or(request.gpu_speeds.at(i)), request.gpu_speeds.at(i));
  }
  return slowest ? model::limit_at_speed(spec.time_limit, *slowest)
                 : model::longest_limit(request, spec.time_limit);
}

namespace {

Wide gpus(const QuotaUse& use) {
  return static_cast<std::uint64_t>(use.gpus.value());
}

// Checks use and request together, in the order in which people see the limits.
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
    // A job that asks for nothing of it exceeds nothing, even if the limit was lowered below the
    // use.
    if (measure.asked == 0) continue;
    if (auto excess = excess_of(limit, measure)) return excess;
  }
  return std::nullopt;
}

}  // namespace

TypeUse& TypeUse::operator+=(const TypeUse& other) {
  gpus += other.gpus;
  committed += other.committed;
  used += other.used;
  return *this;
}

TypeUse& TypeUse::operator-=(const TypeUse& other) {
  CHECK(gpus >= other.gpus && committed >= other.committed && used >= other.used);
  gpus -= other.gpus;
  committed -= other.committed;
  used -= other.used;
  return *this;
}

QuotaUse& QuotaUse::operator+=(const QuotaUse& other) {
  gpus += other.gpus;
  running_jobs += other.running_jobs;
  waiting_jobs += other.waiting_jobs;
  committed += other.committed;
  used += other.used;
  for (const auto& [type, use] : other.of_types) of_types[type] += use;
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
  for (const auto& [type, use] : other.of_types) {
    const auto place = of_types.find(type);
    CHECK(place != of_types.end());
    place->second -= use;
    if (place->second == TypeUse()) of_types.erase(place);
  }
  return *this;
}

TypeUse use_of_type(const QuotaUse& use, std::string_view type_or_family) {
  TypeUse sum;
  for (const auto& [type, of_type] : use.of_types) {
    if (model::gpu_type_matches(type_or_family, type)) sum += of_type;
  }
  return sum;
}

QuotaUse use_of_start(const model::JobSpec& spec) {
  return use_of_start(spec, model::longest_limit(spec.request, spec.time_limit));
}

QuotaUse use_of_start(const model::JobSpec& spec, base::Duration time_limit) {
  const base::GpuShare gpus = gpu_share_of(spec.request);
  return {.gpus = gpus, .running_jobs = 1, .committed = gpu_time(gpus, time_limit)};
}

bool QuotaLedger::add(const model::Organisation& organisation, const model::JobSpec& spec,
                      const QuotaUse& use, std::string_view gpu_type) {
  if (use == QuotaUse()) return false;
  const std::vector<QuotaLimit> limits = limits_of(organisation, spec);
  for (const QuotaLimit& limit : limits) {
    uses_[limit.subject] += counted(limit, use, gpu_type);
  }
  return !limits.empty();
}

bool QuotaLedger::remove(const model::Organisation& organisation, const model::JobSpec& spec,
                         const QuotaUse& use, std::string_view gpu_type) {
  if (use == QuotaUse()) return false;
  const std::vector<QuotaLimit> limits = limits_of(organisation, spec);
  for (const QuotaLimit& limit : limits) {
    const auto place = uses_.find(limit.subject);
    CHECK(place != uses_.end());
    place->second -= counted(limit, use, gpu_type);
    if (place->second == QuotaUse()) uses_.erase(place);
  }
  return !limits.empty();
}

void QuotaLedger::add_used(const QuotaLimit& limit, std::uint64_t used, std::string_view gpu_type) {
  if (used != 0) uses_[limit.subject] += counted(limit, {.used = used}, gpu_type);
}

void QuotaLedger::add_used(const model::Organisation& organisation, const PeriodUse& period_use) {
  for (const auto& [subject, by_type] : period_use.used) {
    const model::Quota* quota = quota_of(organisation, subject);
    if (quota == nullptr) continue;
    for (const auto& [type, used] : by_type) add_used({subject, *quota}, used, type);
  }
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

std::optional<QuotaExcess> excess_on_type(const model::Organisation& organisation,
                                          const model::JobSpec& spec, std::string_view gpu_type,
                                          const QuotaLedger& ledger, const QuotaLedger* added) {
  const base::GpuShare gpus = gpu_share_of(spec.request);
  if (gpus == base::GpuShare()) return std::nullopt;
  const TypeUse asked{.gpus = gpus, .committed = gpu_time(gpus, limit_on_type(spec, gpu_type))};
  for (const QuotaLimit& limit : limits_of(organisation, spec)) {
    if (limit.quota.gpu_types.empty()) continue;
    QuotaUse used = use_of(limit.subject, ledger);
    if (added != nullptr) used += use_of(limit.subject, *added);
    for (const model::TypeQuota& each : limit.quota.gpu_types) {
      if (!model::gpu_type_matches(each.type, gpu_type)) continue;
      if (auto excess = excess_of(limit, each, use_of_type(used, each.type), asked)) return excess;
    }
  }
  return std::nullopt;
}

bool accepts_type(const model::ResourceRequest& request, std::string_view gpu_type) {
  const auto& barred = request.barred_types;
  if (std::ranges::find(barred, gpu_type) != barred.end()) return false;
  return request.gpu_types.empty() ||
         std::ranges::any_of(request.gpu_types, [&](const std::string& wanted) {
           return model::gpu_type_matches(wanted, gpu_type);
         });
}

BarredTypes barred_types(const model::Organisation& organisation, const model::JobSpec& spec,
                         const std::map<std::string, std::uint64_t>& gpus_by_type,
                         const QuotaLedger& ledger, const QuotaLedger* added) {
  BarredTypes barred;
  if (!limits_types(organisation)) return barred;
  for (const auto& [type, gpus] : gpus_by_type) {
    if (!accepts_type(spec.request, type)) continue;
    auto excess = excess_on_type(organisation, spec, type, ledger, added);
    if (!excess) continue;
    barred.types.push_back(type);
    if (!barred.excess) barred.excess = std::move(excess);
  }
  return barred;
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
                                           const QuotaLedger& more) {
  for (const QuotaLimit& limit : limits_of(organisation, spec)) {
    const QuotaUse used = use_of(limit.subject, ledger);
    const QuotaUse asked = use_of(limit.subject, more);
    if (auto excess = excess_of(limit, used, {.committed = asked.committed})) return excess;
    for (const model::TypeQuota& each : limit.quota.gpu_types) {
      auto excess = excess_of(limit, each, use_of_type(used, each.type),
                              {.committed = use_of_type(asked, each.type).committed});
      if (excess) return excess;
    }
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

std::optional<QuotaExcess> present_excess_on_type(const QuotaLimit& limit,
                                                  std::string_view gpu_type,
                                                  const QuotaLedger& ledger) {
  const QuotaUse use = use_of(limit.subject, ledger);
  for (const model::TypeQuota& each : limit.quota.gpu_types) {
    if (!model::gpu_type_matches(each.type, gpu_type)) continue;
    const TypeUse used = use_of_type(use, each.type);
    auto excess =
        excess_of(limit, each, {}, {.gpus = used.gpus, .committed = used.committed + used.used});
    if (excess) return excess;
  }
  return std::nullopt;
}

}  // namespace gpu_platform::scheduling
