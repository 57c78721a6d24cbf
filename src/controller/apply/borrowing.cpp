#include "controller/apply/borrowing.h"

#include <utility>

#include "controller/apply/preemption_holds.h"

namespace gpu_platform::controller {

using model::Attempt;
using model::Job;

void note_changes(Application& a, const scheduling::Lending::Changes& changes) {
  for (const scheduling::Lending::Change& change : changes) {
    Job& j = a.job(change.attempt.job);
    Attempt& attempt = find_attempt(j, change.attempt);
    attempt.is_borrowed = change.is_borrowed;
    a.state.books.update_held(j, attempt);
  }
}

void lend_anew(Application& a) {
  State& state = a.state;
  scheduling::Pools lending(
      scheduling::guarantees_of(a.organisation(), state.books->cluster.totals().gpus_by_type()));
  if (!lending.is_active() && !state.books->lending.is_active()) return;
  for (const model::AttemptId id : state.held_attempts) {
    Job& j = a.job(id.job);
    Attempt& attempt = find_attempt(j, id);
    attempt.is_borrowed = false;
    for (const auto& [changed, is_borrowed] :
         lending.add(scheduling::held_of(lending, *state.policy, j, attempt))) {
      find_attempt(a.job(changed.job), changed).is_borrowed = is_borrowed;
    }
  }
  state.books.follow_guarantees(std::move(lending));
}

void follow_cluster_size(Application& a, std::uint64_t gpus_before) {
  const scheduling::Pools& lending = a.state.books->lending;
  if (!lending.is_active()) return;
  const scheduling::ClusterTotals& now = a.state.books->cluster.totals();
  bool is_same = now.gpus() == gpus_before;
  if (is_same && lending.is_by_type()) {
    is_same =
        scheduling::guarantees_of(a.organisation(), now.gpus_by_type()) == lending.guarantees();
  }
  if (is_same) return;
  a.state.limits_set_at = a.at;
  lend_anew(a);
  update_held_attempts(a);
}

}  // namespace gpu_platform::controller
