#include "scheduling/waiting_queue.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "model/job_spec.h"
#include "scheduling/quota/subjects.h"

namespace gpu_platform::scheduling {

bool operator==(const WaitingJob& a, const WaitingJob& b) {
  return a.id == b.id && (a.spec == b.spec || *a.spec == *b.spec) &&
         a.submitted_at == b.submitted_at && a.avoid == b.avoid && a.avoid_gpus == b.avoid_gpus &&
         a.overdue_since == b.overdue_since && a.preemptions == b.preemptions &&
         a.had_others_stopped == b.had_others_stopped && a.turn == b.turn;
}

bool operator==(const WaitingQueue& a, const WaitingQueue& b) {
  OrderBasis basis = a.basis_;
  basis.ranking = b.basis_.ranking;
  if (basis != b.basis_ || a.basis_.ranking->rows() != b.basis_.ranking->rows()) return false;
  if (a.size() != b.size() || !is_alike(a.classes_, b.classes_)) return false;
  auto other = b.by_rank_.begin();
  for (const auto& [rank, job] : a.by_rank_) {
    Rank same = rank;
    same.place = other->first.place;
    if (same != other->first || job != other->second) return false;
    ++other;
  }
  return true;
}

Rank rank_of(const WaitingJob& job, const OrderBasis& basis) {
  return rank_of(job.id, *job.spec, job.submitted_at, basis, job.overdue_since, job.turn);
}

void WaitingQueue::swap(WaitingQueue& other) noexcept {
  by_rank_.swap(other.by_rank_);
  ranks_.swap(other.ranks_);
  std::swap(classes_, other.classes_);
  std::swap(basis_, other.basis_);
  std::swap(splits_by_owner_, other.splits_by_owner_);
}

void WaitingQueue::put(WaitingJob job, const model::Policy& policy) {
  CHECK(job.id.valid() && job.spec != nullptr);
  reorder(policy);
  const Rank rank = rank_of(job, basis_);
  erase(job.id);
  ranks_.emplace(job.id, rank);
  classes_.add(rank, *job.spec, job.record());
  by_rank_.insert({rank, std::move(job)});
}

bool WaitingQueue::erase(model::JobId job) {
  const auto place = ranks_.find(job);
  if (place == ranks_.end()) return false;
  const auto job_place = by_rank_.find(place->second);
  classes_.remove(place->second, *job_place->second.spec, job_place->second.record());
  by_rank_.erase(job_place);
  ranks_.erase(place);
  return true;
}

const Rank* WaitingQueue::find_rank(model::JobId job) const {
  const auto place = ranks_.find(job);
  return place == ranks_.end() ? nullptr : &place->second;
}

const WaitingJob* WaitingQueue::find(model::JobId job) const {
  const Rank* rank = find_rank(job);
  return rank == nullptr ? nullptr : &find(*rank);
}

bool WaitingQueue::reorder(const model::Policy& policy) {
  if (is_ordered_by(policy)) return false;
  OrderBasis basis = OrderBasis::of(policy);
  basis.ranking = std::move(basis_.ranking);
  basis.cluster_gpus = basis_.cluster_gpus;
  basis.has_budgets = basis_.has_budgets;
  basis_ = std::move(basis);
  classify();
  return move_whose_rank_changed();
}

// Owners are told apart only if limits depend on them: else a thousand users' equal jobs are one
// class.
void WaitingQueue::classify() {
  const model::Organisation& organisation = *basis_.organisation;
  const bool split =
      basis_.has_budgets || guarantees_anything(organisation) || limits_starts(organisation);
  if (std::exchange(splits_by_owner_, split) == split) return;
  classes_.clear();
  classes_.split_by_owner(split);
  for (const auto& [rank, job] : by_rank_) classes_.add(rank, *job.spec, job.record());
}

void WaitingQueue::keep_budgets(bool has_some) {
  basis_.has_budgets = has_some;
  classify();
}

bool WaitingQueue::reorder(base::Shared<FairShareRanking> ranking) {
  basis_.ranking = std::move(ranking);
  return move_whose_rank_changed();
}

bool WaitingQueue::reorder(const OrderBasis& basis) {
  if (basis_ == basis) return false;
  basis_ = basis;
  classify();
  return move_whose_rank_changed();
}

bool WaitingQueue::welcome(base::Shared<FairShareRanking> ranking) {
  const bool keeps_all = basis_.ranking->is_kept_by(*ranking);
  basis_.ranking = std::move(ranking);
  return !keeps_all && move_whose_rank_changed();
}

bool WaitingQueue::resize_cluster(std::uint64_t gpus) {
  if (std::exchange(basis_.cluster_gpus, gpus) == gpus) return false;
  const bool has_part = basis_.order == model::QueueOrder::kWeighted && basis_.weights.size > 0;
  return has_part && move_whose_rank_changed();
}

bool WaitingQueue::move_whose_rank_changed() {
  std::vector<std::pair<Rank, Rank>> moves;
  for (const auto& [rank, job] : by_rank_) {
    const Rank now = rank_of(job, basis_);
    if (now != rank) moves.emplace_back(rank, now);
  }
  if (moves.empty()) return false;
  // All are taken out before the first is put back: ranks may be exchanged.
  std::vector<WaitingJob> taken;
  for (const auto& [from, to] : moves) {
    const auto place = by_rank_.find(from);
    taken.push_back(std::move(place->second));
    by_rank_.erase(place);
    classes_.remove(from, *taken.back().spec, taken.back().record());
  }
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const Rank& rank = moves[i].second;
    classes_.add(rank, *taken[i].spec, taken[i].record());
    ranks_[rank.job] = rank;
    by_rank_.insert({rank, std::move(taken[i])});
  }
  return true;
}

}  // namespace gpu_platform::scheduling
