#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/allocation.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/preemption_hold.h"
#include "scheduling/backfill/timeline.h"
#include "scheduling/preemption/victim_index.h"
#include "scheduling/trial.h"

// Finds the jobs to stop so that a waiting job can start.
//
// A victim is stopped as a whole, on all its nodes. The cost of a set of victims is compared in
// this order: where they are reclaimed, how often the one that was stopped most often has been
// stopped before; the work lost, which is for each victim the time since its attempt began times
// its GPUs (a job without GPUs counts as one, a part as its share), those on other nodes included;
// the class of the most important victim, the lower the better; their number; the age of the
// oldest; their ids.

namespace gpu_platform::scheduling {

// A fit for a job, once all the victims are gone. None of them could be spared.
struct Fit {
  model::Allocation allocation;
  std::vector<model::AttemptId> victims;  // ascending

  friend bool operator==(const Fit&, const Fit&) = default;
};

struct Beneficiary {
  const model::ResourceRequest& request;
  model::PriorityClass priority_class = model::PriorityClass::kMedium;
  // kOverdue: also those that kClass allows.
  model::PreemptionRule rule = model::PreemptionRule::kClass;
  std::string_view team = {};  // of kOverdue
  // Set with kReclaim: the pools in which it would be within its holder's guarantee.
  VictimIndex::PoolNames pools = {};
};

class VictimSearch {
 public:
  // Returns where the beneficiary would start in the trial as it is.
  using Placing = std::function<std::optional<model::Allocation>()>;

  struct Options {
    base::Instant now;
    // Candidates on a node up to which every subset is looked at; of more, the cheapest that
    // suffice are taken one after the other.
    std::size_t max_exact = 16;
    // Bounds of one search: nodes looked at, the ones with the youngest candidates first, steps
    // through subsets, and attempts at placing. At a bound the best set so far is taken.
    std::size_t max_nodes = 256;
    std::size_t max_steps = 100'000;
    std::size_t max_looks = 1'000;
    // Victims passed in one walk from the youngest on; some are no candidates for an overdue job.
    std::size_t max_walk = 4'096;
    // Candidates that a job is tried with which no single node has room for.
    std::size_t max_across_nodes = 1'024;
  };

  // Trial and index must outlive the search.
  VictimSearch(Trial& trial, const VictimIndex& index, const Options& options)
      : trial_(trial), index_(index), options_(options) {}

  // Returns the cheapest set of victims without which the job fits, exact within the bounds above,
  // or nothing. The job must not fit as it is. Leaves the trial as it was.
  std::optional<Fit> find(const Beneficiary& beneficiary, const Placing& placing);
  // No later search finds these attempts again.
  void take(const std::vector<model::AttemptId>& victims);

  // Returns from when on those that may be stopped for it may be: now, or once they have run for
  // long enough. The youngest, within the bounds above.
  Timeline::Sooner stoppable_from(const Beneficiary& beneficiary);

 private:
  struct Candidate {
    const Victim* victim = nullptr;
    std::int64_t lost_ms = 0;  // GPU time
    std::uint32_t stops = 0;   // where it is reclaimed: how often it was stopped before
  };
  struct LeastCost {
    std::uint32_t stops = 0;
    std::int64_t lost_ms = 0;
  };
  using Candidates = std::vector<Candidate>;
  struct Cost;
  class OnNode;
  struct Best;

  bool is_reclaim() const;
  bool is_candidate(const Victim& victim) const;
  bool is_below_or_overdue(const Victim& victim) const;
  template <class Visit>
  void for_each_candidate_while(const Visit& visit);
  Candidate candidate_of(const Victim& victim) const;
  Cost cost_of(const Candidates& victims) const;
  Candidates candidates_on(model::NodeId node) const;
  std::optional<model::Allocation> look(const Candidates& victims);
  void search_nodes(Best& best);
  void search_across_nodes(Best& best);
  void drop_superfluous(Best& best);

  Trial& trial_;
  const VictimIndex& index_;
  const Options options_;
  std::set<model::AttemptId> taken_;  // victims that were taken

  // The state of the present search.
  const Beneficiary* beneficiary_ = nullptr;
  const Placing* placing_ = nullptr;
  std::size_t steps_left_ = 0;
  std::size_t looks_left_ = 0;
};

}  // namespace gpu_platform::scheduling
