#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "health/condition_rules.h"
#include "health/rules.h"
#include "health/verdict.h"
#include "model/evidence.h"

// What one verdict is made from. Values that live as long as the call of judge_gpu().

namespace gpu_platform::health {

// What one rule said.
struct Finding {
  const Rule* rule = nullptr;
  Action action = Action::kCount;
  std::uint32_t confidence_percent = 0;
  std::string text;           // a sentence without its full stop
  base::Instant at;           // of the latest piece
  base::Instant again_at;     // unset: only news changes it
  bool is_condition = false;  // told by what watches the node, which tells when it is over, too
};

// The pieces that count for one GPU: until now, and since a person brought it online.
class GpuCase {
 public:
  GpuCase(const Records& records, const GpuKey& gpu, const Rules& rules, base::Instant now);

  const Records& records() const { return records_; }
  const GpuKey& gpu() const { return gpu_; }
  base::Instant now() const { return now_; }
  std::span<const model::Evidence> pieces() const { return pieces_; }
  std::span<const model::Evidence> node_pieces() const { return node_pieces_; }
  const Rule& xid(std::uint32_t code) const { return rules_.of_xid(code, gpu_.type, gpu_.node); }
  const Rule& rule(std::string_view name) const { return rules_.of(name, gpu_.type, gpu_.node); }
  ConditionMeaning condition(std::string_view text) const {
    return meaning_of_condition(text, rules_, gpu_.type, gpu_.node);
  }

  // The latest reset that worked, restart and passed check; unset: none.
  base::Instant reset_at() const { return reset_at_; }
  base::Instant restarted_at() const { return restarted_at_; }
  base::Instant checked_at() const { return checked_at_; }
  bool is_hard(const model::Evidence& piece) const;
  // Whether something since then has cured what needs this action. A passed check alone cures what
  // only degrades.
  bool is_cured(base::Instant at, Action action) const;
  // Whether jobs have done well on it since then, so that what only degrades it is over.
  bool has_worked_since(base::Instant at) const;
  // Whether a passed check or a person has answered what is only suspected.
  bool is_answered(base::Instant at) const { return checked_at_.is_set() && at < checked_at_; }
  bool is_recent(base::Instant at, base::Duration window) const { return now_ - at <= window; }

 private:
  const Records& records_;
  GpuKey gpu_;
  const Rules& rules_;
  base::Instant now_;
  std::span<const model::Evidence> pieces_;
  std::span<const model::Evidence> node_pieces_;
  base::Instant reset_at_;
  base::Instant restarted_at_;
  base::Instant checked_at_;
  base::Instant repaired_at_;  // the latest reset that a passed check followed
};

// The times of a fault, joined to bursts.
struct Burst {
  base::Instant begin;
  base::Instant end;
};
void add_to_bursts(std::vector<Burst>& bursts, const model::Evidence& piece, base::Duration gap);
// Returns the most bursts that began within such a window.
std::size_t max_within(std::span<const Burst> bursts, base::Duration window);

// Whether this piece alone shows broken hardware or a broken driver, so that it explains the
// failure of jobs that it hit. Of the GPU only its type and its node matter; they may be empty.
bool is_hard(const model::Evidence& piece, const Rules& rules, const GpuKey& gpu);
// The same of a condition that lasts.
bool is_hard_condition(std::string_view text, const Rules& rules, const GpuKey& gpu);

// Statistics: which jobs failed here, and how they did elsewhere.
void find_suspicions(const GpuCase& gpu, std::vector<Finding>& findings);
void find_complaints(const GpuCase& gpu, std::vector<Finding>& findings);

}  // namespace gpu_platform::health
