#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "health/gpu_case.h"
#include "health/verdict.h"
#include "model/evidence.h"

namespace gpu_platform::health {

// The judgement of one GPU: each part adds what its rules say, and the worst is the verdict. It
// lives as long as one call of judge_gpu(); the case must outlive it.
class GpuJudgement {
 public:
  explicit GpuJudgement(const GpuCase& gpu) : gpu_(gpu) {}

  GpuVerdict judge();

 private:
  // XIDs and the driver's own word (judge_xids.cpp).
  void find_xids();
  void find_xid(const Rule& rule, std::span<const model::Evidence* const> pieces);
  void find_nvlink(const Rule& rule, std::span<const model::Evidence* const> pieces);
  void find_recovery_action();
  bool driver_wants_nothing(base::Instant at) const;
  bool another_gpu_is_lost(base::Instant at) const;
  bool had_it_elsewhere(const model::Evidence& piece) const;

  // What lasts (judge_levels.cpp).
  // One that lasts, told with the words that came with it.
  struct Cure {
    Action by = Action::kNone;     // what ends the level, even if no piece says so
    base::Duration patience = {};  // a level that is over sooner is no fault
    std::string_view unit;
  };
  void add_level(std::string_view name, model::EvidenceKind kind, const Cure& cure);
  void find_levels();
  void find_heat(std::string_view name, model::EvidenceKind kind);
  void find_slowdown();

  // Counters, other events of the driver, and the node's conditions (judge_counters.cpp).
  void find_counters();
  void find_counter(std::string_view name, model::EvidenceKind kind, std::int64_t many,
                    base::Duration window);
  void find_driver_events();
  void find_node_faults();

  void find_repairs();
  bool had_fault_by(base::Instant at) const;
  GpuVerdict verdict();

  void add(const Rule& rule, Action action, base::Instant at, std::string text,
           base::Instant again_at = {}) {
    findings_.push_back({&rule, action, rule.confidence_percent, std::move(text), at, again_at});
  }

  const GpuCase& gpu_;
  std::vector<Finding> findings_;
};

}  // namespace gpu_platform::health
