#include "health/gpu_judge.h"

#include <utility>

#include <fmt/format.h>

#include "base/utc.h"
#include "health/xid_rules.h"

namespace gpu_platform::health {

namespace {

using hardware::GpuCondition;

constexpr std::string_view kThenOnline = "then run 'gpu-platform online'";

Judgement fault(std::string_view what, base::Instant at, std::string_view remedy) {
  return {model::TaintEffect::kNoNewWork,
          fmt::format("{} at {}: {}, {}", what, base::utc(at), remedy, kThenOnline)};
}

}  // namespace

std::optional<Judgement> judge_xid(std::uint64_t xid, base::Instant at) {
  const XidRule* const rule = find_xid_rule(xid);
  if (rule == nullptr || rule->remedy.empty()) return std::nullopt;
  return fault(fmt::format("XID {} ({})", xid, rule->what), at, rule->remedy);
}

std::optional<Judgement> GpuJudge::judge(const hardware::GpuReading& reading, base::Instant now) {
  if (reading.condition != GpuCondition::kAnswering) return judge_refusal(reading, now);
  refusals_ = 0;
  refusal_.clear();
  const bool is_back = answers_ + 1 == kAnswers;
  if (answers_ < kAnswers) ++answers_;
  if (auto judged = judge_memory(reading, now)) return judged;
  return is_back ? std::optional(Judgement()) : std::nullopt;
}

std::optional<Judgement> GpuJudge::judge_refusal(const hardware::GpuReading& reading,
                                                 base::Instant now) {
  answers_ = 0;
  if (refusals_ < kRefusals) ++refusals_;
  const bool may_pass = reading.condition == GpuCondition::kNotAnswering;
  if (may_pass && refusals_ < kRefusals) return std::nullopt;
  if (refusal_.empty()) {
    refusal_ =
        fmt::format("does not answer since {}: {}", base::utc(now),
                    reading.problem.empty() ? "the driver gives no reason" : reading.problem);
  }
  return Judgement{model::TaintEffect::kOut, refusal_};
}

std::optional<Judgement> GpuJudge::judge_memory(const hardware::GpuReading& reading,
                                                base::Instant now) {
  std::optional<Judgement> judged;
  if (reading.ecc_uncorrected) {
    const auto before = std::exchange(uncorrected_errors_, reading.ecc_uncorrected);
    if (before && *reading.ecc_uncorrected > *before) {
      const std::uint64_t count = *reading.ecc_uncorrected - *before;
      judged = fault(fmt::format("{} uncorrected memory error{}", count, count == 1 ? "" : "s"),
                     now, "reset the GPU");
    }
  }
  if (reading.slow && reading.slow->remap_failed) {
    const auto before = std::exchange(remap_failed_, reading.slow->remap_failed);
    if (before == false && remap_failed_ == true) {
      judged = fault("a memory row could not be remapped", now, "reset or replace the GPU");
    }
  }
  return judged;
}

}  // namespace gpu_platform::health
