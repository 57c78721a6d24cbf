#include "accounting/advice.h"

#include <algorithm>
#include <tuple>

#include "accounting/charge.h"

namespace gpu_platform::accounting {

namespace {

// A job may need a little more memory than was ever read of its family.
constexpr std::int64_t kMemoryTenths = 11;

bool is_gpu_use(const model::LedgerLine& line) {
  return line.kind == model::LedgerKind::kHeld && !line.gpu_uuid.empty();
}

// Its use within the span; empty if it has none.
Span use_within(const model::LedgerLine& line, Span span) {
  if (!is_gpu_use(line)) return {};
  return {std::max(line.started, span.from), std::min(line.ended, span.to)};
}

__int128 share_time_of(const model::LedgerLine& line, Span used) {
  return static_cast<__int128>(line.share.value()) * (used.to - used.from);
}

std::string key_of_family(const model::LedgerLine& line) {
  std::string key = line.user;
  for (const std::string_view part : {std::string_view(line.project), family_of(line.job_name),
                                      std::string_view(line.gpu_type)}) {
    key += '\0';
    key += part;
  }
  return key;
}

void add_attempt(model::AttemptId attempt, JobFamily& family) {
  if (!family.latest.empty() && family.latest.back() == attempt) return;
  ++family.attempts;
  if (family.latest.size() == kMaxFamilyLooks) family.latest.erase(family.latest.begin());
  family.latest.push_back(attempt);
}

bool is_dearer(const JobFamily& a, const JobFamily& b) {
  if (a.bill != b.bill) return a.bill > b.bill;
  return std::tie(a.user, a.project, a.name, a.gpu_type) <
         std::tie(b.user, b.project, b.name, b.gpu_type);
}

bool has_memory_for(const GpuOffer& offer, base::Bytes peak) {
  return offer.memory * 10 >= peak * kMemoryTenths;
}

bool does_enough(const GpuOffer& offer, const GpuOffer& own, std::optional<double> utilization) {
  const double needed = static_cast<double>(own.weight) * utilization.value_or(100) / 100;
  return static_cast<double>(offer.weight) >= needed;
}

bool saves_enough(base::MicroUsd price, base::MicroUsd own) {
  return (own - price) * 100 >= own * kLeastSavedPercent;
}

// The price decides; the first of equal ones stays.
const GpuOffer* cheapest_for(const GpuOffer& own, base::Bytes peak,
                             std::optional<double> utilization, std::span<const GpuOffer> offers) {
  const GpuOffer* best = nullptr;
  for (const GpuOffer& offer : offers) {
    if (!offer.per_hour || !saves_enough(*offer.per_hour, *own.per_hour)) continue;
    if (!has_memory_for(offer, peak) || !does_enough(offer, own, utilization)) continue;
    if (best == nullptr || *offer.per_hour < *best->per_hour) best = &offer;
  }
  return best;
}

}  // namespace

// ---- types of GPUs for families of jobs

std::string_view family_of(std::string_view job_name) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kTail = "0123456789-_.:#@ ";
  if (job_name.empty() || !kDigits.contains(job_name.back())) return job_name;
  const std::size_t last = job_name.find_last_not_of(kTail);
  return last == std::string_view::npos ? job_name : job_name.substr(0, last + 1);
}

JobFamily* FamilySum::family_for(const model::LedgerLine& line) {
  const std::string key = key_of_family(line);
  if (keys_.size() >= kMaxFamilies && !keys_.has(key)) {
    is_complete_ = false;
    return nullptr;
  }
  const std::uint32_t number = keys_.number_of(key);
  if (number == families_.size()) {
    JobFamily& family = families_.emplace_back();
    family.user = line.user;
    family.project = line.project;
    family.name = family_of(line.job_name);
    family.gpu_type = line.gpu_type;
  }
  return &families_[number];
}

void FamilySum::add(const model::LedgerLine& line) {
  const Span used = use_within(line, span_);
  if (used.from >= used.to || line.not_billed != model::NotBilled::kBilled) return;
  JobFamily* const family = family_for(line);
  if (family == nullptr) return;
  family->team = line.team;
  family->time += share_time_of(line, used);
  if (prices_.find(line.price) == nullptr) family->unpriced += share_time_of(line, used);
  family->bill += charge_of(line, prices_, used.from, used.to);
  if (line.share < base::kWholeGpu) family->has_parts = true;
  add_attempt(line.attempt, *family);
}

std::vector<JobFamily> FamilySum::dearest(std::size_t max) const {
  std::vector<JobFamily> sorted = families_;
  std::ranges::sort(sorted, is_dearer);
  if (sorted.size() > max) sorted.resize(max);
  return sorted;
}

void MeasuredUse::add(const AttemptUse& use) {
  if (use.measured <= 0 && !use.peak_memory) return;
  ++attempts_;
  if (use.measured > 0) {
    ++measured_;
    utilization_ += use.utilization_percent;
  }
  if (use.peak_memory)
    peak_memory_ = std::max(peak_memory_.value_or(*use.peak_memory), *use.peak_memory);
}

std::optional<double> MeasuredUse::utilization_percent() const {
  if (measured_ == 0) return std::nullopt;
  return utilization_ / static_cast<double>(measured_);
}

TypeAdvice advise_type(const JobFamily& family, const MeasuredUse& use,
                       std::span<const GpuOffer> offers) {
  TypeAdvice advice;
  const auto own = std::ranges::find(offers, family.gpu_type, &GpuOffer::gpu_type);
  if (own == offers.end()) {
    advice.unknown.emplace_back("type of GPU");
  } else if (!own->per_hour) {
    advice.unknown.emplace_back("price");
  }
  if (family.has_parts) advice.unknown.emplace_back("parts of GPUs");
  if (!use.peak_memory()) advice.unknown.emplace_back("peak memory");
  const bool is_comparable = advice.unknown.empty();
  if (!use.utilization_percent()) advice.unknown.emplace_back("utilization");
  // What is free cannot become cheaper.
  if (!is_comparable || *own->per_hour == base::MicroUsd()) return advice;
  const GpuOffer* const better =
      cheapest_for(*own, *use.peak_memory(), use.utilization_percent(), offers);
  if (better == nullptr) return advice;
  const base::MicroUsd less = *own->per_hour - *better->per_hour;
  advice.better = *better;
  // The division comes first: the product of a large bill would not fit.
  advice.saved = ExactCost(family.bill.units() / own->per_hour->value() * less.value());
  advice.saved_percent = static_cast<std::uint32_t>((less * 100).value() / own->per_hour->value());
  return advice;
}

// ---- GPUs that were held and hardly used

void HeldSum::add(const model::LedgerLine& line) {
  const Span used = use_within(line, span_);
  if (used.from >= used.to) return;
  if (attempts_.empty() || attempts_.back().attempt != line.attempt) {
    HeldAttempt& next = attempts_.emplace_back();
    next.attempt = line.attempt;
    next.team = teams_.number_of(line.team);
    next.share = line.share;
    next.used = used;
  }
  HeldAttempt& held = attempts_.back();
  held.used = {std::min(held.used.from, used.from), std::max(held.used.to, used.to)};
  held.time += share_time_of(line, used);
  held.bill += charge_of(line, prices_, used.from, used.to);
}

std::vector<HeldAttempt> HeldSum::largest_first() const {
  std::vector<HeldAttempt> sorted = attempts_;
  std::ranges::sort(sorted, [](const HeldAttempt& a, const HeldAttempt& b) {
    return a.time != b.time ? a.time > b.time : a.attempt < b.attempt;
  });
  return sorted;
}

Activity activity_of(const HeldAttempt& held, const std::optional<AttemptUse>& use,
                     const WasteRule& rule) {
  if (!use || use->measured < rule.least_measured) return Activity::kNotMeasured;
  const bool is_long = held.used.to - held.used.from >= rule.after;
  return is_long && use->utilization_percent < rule.below_percent ? Activity::kIdle
                                                                  : Activity::kUsed;
}

void ActivityTime::add(const HeldAttempt& held) {
  ++attempts;
  time += held.time;
  bill += held.bill;
}

// ---- capacity that is worth its reservation

void ReservedSum::add(const model::LedgerLine& line) {
  const Span used = use_within(line, span_);
  if (used.from >= used.to || line.capacity != model::CapacityClass::kOnDemand) return;
  std::vector<Change>& changes = changes_[line.gpu_type];
  changes.push_back({used.from, line.share.value()});
  changes.push_back({used.to, -line.share.value()});
}

std::vector<std::string> ReservedSum::gpu_types() const {
  std::vector<std::string> types;
  for (const auto& [type, changes] : changes_) types.push_back(type);
  return types;
}

std::vector<model::Millis> ReservedSum::time_with_at_least(std::vector<Change> changes) {
  std::ranges::sort(changes);
  std::vector<model::Millis> times;
  std::int64_t share = 0;
  model::Millis since = 0;
  for (const Change& change : changes) {
    const auto gpus = static_cast<std::size_t>(share / base::kWholeGpu.value());
    if (times.size() < gpus) times.resize(gpus);
    for (std::size_t i = 0; i < gpus; ++i) times[i] += change.at - since;
    since = change.at;
    share += change.share;
  }
  return times;
}

std::vector<ReservedAdvice> ReservedSum::advice(
    const std::map<std::string, ReservedOffer>& offers) const {
  std::vector<ReservedAdvice> out;
  for (const auto& [type, changes] : changes_) {
    ReservedAdvice& advice = out.emplace_back();
    advice.gpu_type = type;
    for (const Change& change : changes) {
      advice.time -= static_cast<__int128>(change.share) * change.at;
    }
    const auto offer = offers.find(type);
    if (offer == offers.end()) continue;
    advice.offer = offer->second;
    const ExactCost reserved =
        gpu_cost(base::kWholeGpu, span_.to - span_.from, offer->second.reserved);
    for (const model::Millis busy : time_with_at_least(changes)) {
      const ExactCost saved = gpu_cost(base::kWholeGpu, busy, offer->second.on_demand) - reserved;
      if (saved <= ExactCost()) break;
      ++advice.gpus;
      advice.busy = busy;
      advice.saved += saved;
    }
  }
  return out;
}

}  // namespace gpu_platform::accounting
