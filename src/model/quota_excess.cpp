#include "model/quota_excess.h"

#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/parse.h"
#include "base/utc.h"

namespace gpu_platform::model {

namespace {

// "2", "0.5".
std::string of_thousandths(std::uint64_t value) {
  std::string text = fmt::format("{}", value / 1000);
  if (value % 1000 == 0) return text;
  text += fmt::format(".{:03}", value % 1000);
  while (text.back() == '0') text.pop_back();
  return text;
}

// "4 GPUs", "1 GPU", "0.5 GPUs".
std::string gpus_text(std::uint64_t thousandths) {
  return of_thousandths(thousandths) + (thousandths == 1000 ? " GPU" : " GPUs");
}

// "team vision".
std::string named(QuotaHolder holder, const std::string& name) {
  return name.empty() ? "work without a guarantee" : fmt::format("{} {}", to_string(holder), name);
}

// " of type H100".
std::string of_type(const QuotaExcess& excess) {
  if (!excess.but_types.empty()) return " of types other than " + excess.but_types;
  return excess.gpu_type.empty() ? "" : " of type " + excess.gpu_type;
}

// "gpu_types.H100.", as in the configuration.
std::string key_of_type(const QuotaExcess& excess) {
  return excess.gpu_type.empty() ? "" : "gpu_types." + excess.gpu_type + ".";
}

// "team a uses 6 GPUs and its guarantee is 4; 4 more would exceed it by 6".
std::string beyond_guarantee(const std::string& whose, const QuotaExcess& excess) {
  const std::string used =
      fmt::format("{} uses {}{}", whose, gpus_text(excess.used), of_type(excess));
  const std::string more = of_thousandths(excess.asked);
  if (excess.name.empty()) return fmt::format("{}, and this job needs {} more", used, more);
  const std::uint64_t then = excess.used + excess.asked;
  return fmt::format("{} and its guarantee is {}; {} more would exceed it by {}", used,
                     of_thousandths(excess.guaranteed), more,
                     of_thousandths(then > excess.guaranteed ? then - excess.guaranteed : 0));
}

// "only 2 GPUs without a guarantee are left"; the words are "without a guarantee" and "left".
std::string only(std::uint64_t thousandths, std::string_view which, std::string_view what) {
  if (thousandths == 0) return fmt::format("no GPU {} is {}", which, what);
  return fmt::format("only {} {} {} {}", gpus_text(thousandths), which,
                     thousandths == 1000 ? "is" : "are", what);
}

std::string money(std::uint64_t millionths) {
  return base::written(base::MicroUsd(static_cast<std::int64_t>(millionths)));
}

}  // namespace

std::string_view to_string(QuotaHolder holder) {
  switch (holder) {
    case QuotaHolder::kTeam:
      return "team";
    case QuotaHolder::kUser:
      return "user";
    case QuotaHolder::kProject:
      return "project";
  }
  CHECK(false);
  std::unreachable();
}

std::string_view to_string(QuotaKind kind) {
  switch (kind) {
    case QuotaKind::kGpus:
      return "max_gpus";
    case QuotaKind::kRunningJobs:
      return "max_running_jobs";
    case QuotaKind::kQueuedJobs:
      return "max_queued_jobs";
    case QuotaKind::kGpuHours:
      return "gpu_hours";
    case QuotaKind::kGuarantee:
      return "guaranteed_gpus";
    case QuotaKind::kBorrowLimit:
      return "borrow_limit";
    case QuotaKind::kLendLimit:
      return "lend_limit";
    case QuotaKind::kBudget:
      return "budget";
  }
  CHECK(false);
  std::unreachable();
}

std::string describe(const SurplusExcess& excess) {
  return fmt::format("{} {} its share of the GPUs beyond guarantees: {} of {} (over_quota_weight)",
                     named(excess.holder, excess.name),
                     excess.held > excess.share ? "is above" : "has reached",
                     of_thousandths(excess.held), of_thousandths(excess.share));
}

std::string describe(const QuotaExcess& excess) {
  const std::string whose = named(excess.holder, excess.name);
  switch (excess.kind) {
    case QuotaKind::kGpus:
      return fmt::format("{} holds {}{} and this job needs {} more; the limit is {} ({}max_gpus)",
                         whose, gpus_text(excess.used), of_type(excess),
                         of_thousandths(excess.asked), of_thousandths(excess.limit),
                         key_of_type(excess));
    case QuotaKind::kRunningJobs:
      return fmt::format("{} has {} jobs running; the limit is {} (max_running_jobs)", whose,
                         excess.used, excess.limit);
    case QuotaKind::kQueuedJobs:
      return fmt::format("{} has {} jobs waiting; the limit is {} (max_queued_jobs)", whose,
                         excess.used, excess.limit);
    case QuotaKind::kGpuHours:
      return fmt::format(
          "{} has used or may still use {} {}{}GPU-hours of this period and this job may use {} "
          "more; the limit is {} ({}gpu_hours)",
          whose, of_thousandths(excess.used), excess.gpu_type, excess.gpu_type.empty() ? "" : " ",
          of_thousandths(excess.asked), of_thousandths(excess.limit), key_of_type(excess));
    case QuotaKind::kGuarantee:
      return fmt::format("{}; {} ({}guaranteed_gpus); use --preemptible to borrow {}",
                         beyond_guarantee(whose, excess),
                         only(excess.limit, "without a guarantee", "left"), key_of_type(excess),
                         excess.guaranteed_to.empty() ? "GPUs that are guaranteed to others"
                                                      : "from " + excess.guaranteed_to);
    case QuotaKind::kBorrowLimit:
      return fmt::format("{}; it may borrow {} ({}borrow_limit)", beyond_guarantee(whose, excess),
                         of_thousandths(excess.limit), key_of_type(excess));
    case QuotaKind::kLendLimit:
      return fmt::format(
          "{}; {} ({}lend_limit){}{}", beyond_guarantee(whose, excess),
          only(excess.limit, "without a guarantee or lent by others", "left"), key_of_type(excess),
          excess.guaranteed_to.empty() ? "" : "; the rest is guaranteed to ", excess.guaranteed_to);
    case QuotaKind::kBudget:
      return fmt::format(
          "{} has spent {} of its budget of {} {} for this {}; it renews on {}; {} may override it",
          whose, money(excess.used), money(excess.limit), excess.currency, excess.period,
          base::utc(excess.renews_at),
          excess.holder == QuotaHolder::kTeam
              ? "an administrator or a coordinator of a team above it"
              : "an administrator");
  }
  CHECK(false);
  std::unreachable();
}

}  // namespace gpu_platform::model
