#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "hardware/readings.h"
#include "model/taint.h"

namespace gpu_platform::health {

// What health says about a GPU.
struct Judgement {
  // kOut: the GPU does not answer, which health takes back when it answers again. kNoNewWork: it
  // had a fault that has to be repaired. Nothing: it answers.
  std::optional<model::TaintEffect> effect = {};
  std::string text = {};  // the fault, when, and what helps

  friend bool operator==(const Judgement&, const Judgement&) = default;
};

// Returns nothing if the XID keeps no work away.
std::optional<Judgement> judge_xid(std::uint64_t xid, base::Instant at);

// Judges one GPU by its readings, in their order. What was so before the first of them is no news,
// except that the GPU does not answer. Thread: one owner.
class GpuJudge {
 public:
  // A refusal that may pass, such as a timeout, must come so often in a row. That of a GPU which is
  // lost or needs a reset counts at once.
  static constexpr std::uint32_t kRefusals = 2;
  // A GPU is back when it has answered so often in a row.
  static constexpr std::uint32_t kAnswers = 6;

  // Returns nothing if there is no news. That the GPU does not answer is repeated with each
  // reading; that it answers is said once.
  std::optional<Judgement> judge(const hardware::GpuReading& reading, base::Instant now);

 private:
  std::optional<Judgement> judge_refusal(const hardware::GpuReading& reading, base::Instant now);
  std::optional<Judgement> judge_memory(const hardware::GpuReading& reading, base::Instant now);

  std::uint32_t refusals_ = 0;
  std::uint32_t answers_ = 0;
  std::string refusal_;  // what was said of it; empty: it answers
  std::optional<std::uint64_t> uncorrected_errors_;
  std::optional<bool> remap_failed_;
};

}  // namespace gpu_platform::health
