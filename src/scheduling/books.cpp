#include "scheduling/books.h"

#include <utility>

#include "base/check.h"
#include "model/job_spec.h"
#include "scheduling/book_entries.h"

namespace gpu_platform::scheduling {

Books Books::of(const base::PersistentMap<model::Job>& jobs,
                const base::PersistentMap<model::Node>& nodes, Given given) {
  Books books;
  Parts& parts = books.parts_;
  parts.holds = std::move(given.holds);
  parts.reservations = std::move(given.reservations);
  parts.history = std::move(given.history);
  parts.period_use = std::move(given.period_use);
  parts.budgets = std::move(given.budgets);
  parts.queue = WaitingQueue(OrderBasis::of(*given.policy));
  parts.queue.reorder(std::move(given.ranking));
  parts.queue.keep_budgets(!parts.budgets->empty());
  books.policy_ = std::move(given.policy);
  parts.cluster.follow(books.policy_->sharing);
  parts.cluster.follow(books.policy_->load_rules);
  nodes.for_each([&](std::uint64_t, const model::Node& node) { books.put(node); });
  parts.lending = Pools(guarantees_of(books.organisation(), parts.cluster.totals().gpus_by_type()));
  jobs.for_each([&](std::uint64_t, const model::Job& job) { books.put(job); });
  if (!limits_anything(books.organisation())) return books;
  parts.quotas.add_used(books.organisation(), *parts.period_use);
  return books;
}

std::vector<std::string_view> Books::differences(const Books& a, const Books& b) {
  const auto& [holds, reservations, history, period_use, budgets, cluster, queue, starvation_queue,
               running, victims, quotas, lending] = a.parts_;
  const Parts& other = b.parts_;
  std::vector<std::string_view> found;
  const auto check = [&](std::string_view name, bool is_same) {
    if (!is_same) found.push_back(name);
  };
  check("preemption holds", holds == other.holds);
  check("reservations", reservations == other.reservations);
  check("the history of runs", history == other.history);
  check("the use of the period", period_use == other.period_use);
  check("the budgets", budgets == other.budgets);
  check("free capacity", cluster == other.cluster);
  check("the queue", queue == other.queue);
  check("the starvation queue", starvation_queue == other.starvation_queue);
  check("the ends of running attempts", running == other.running);
  check("the possible victims", victims == other.victims);
  check("the use of quotas", quotas == other.quotas);
  check("the attempts that borrow", lending == other.lending);
  return found;
}

void Books::put(const model::Node& node) {
  if (!parts_.cluster.update(node)) return;
  parts_.queue.resize_cluster(parts_.cluster.totals().gpus());
  note(true);
}

void Books::erase(model::NodeId node) {
  if (!parts_.cluster.remove(node)) return;
  parts_.queue.resize_cluster(parts_.cluster.totals().gpus());
  note(true);
}

void Books::put(const model::Job& job) {
  put_waiting(job);
  for (const model::Attempt& attempt : job.attempts) {
    if (model::holds_resources(attempt.state)) put_held(job, attempt);
  }
}

void Books::erase(const model::Job& job) {
  erase_waiting(job);
  for (const model::Attempt& attempt : job.attempts) {
    if (model::holds_resources(attempt.state)) erase_held(job, attempt);
  }
}

void Books::put_waiting(const model::Job& job) {
  if (counts_as_waiting(job.state)) {
    note(parts_.quotas.add(organisation(), *job.spec, {.waiting_jobs = 1}));
  }
  if (job.state != model::JobState::kQueued) return;
  parts_.starvation_queue.put(*job.spec, {job.eligible_at, job.id});
  if (job.overdue_since.is_set()) parts_.starvation_queue.pass(*job.spec, job.id);
  update_waiting(job);
}

void Books::erase_waiting(const model::Job& job) {
  if (counts_as_waiting(job.state)) {
    note(parts_.quotas.remove(organisation(), *job.spec, {.waiting_jobs = 1}));
  }
  if (job.state != model::JobState::kQueued) return;
  parts_.starvation_queue.erase(*job.spec, job.id);
  note(parts_.queue.erase(job.id));
}

void Books::update_waiting(const model::Job& job) {
  parts_.queue.put(waiting_job(job), *policy_);
  note(true);
}

Lending::Changes Books::put_held(const model::Job& job, const model::Attempt& attempt) {
  Lending::Changes changes = count(job, attempt);
  update_held(job, attempt);
  return changes;
}

Lending::Changes Books::erase_held(const model::Job& job, const model::Attempt& attempt) {
  const model::AttemptId id{job.id, attempt.number};
  note(parts_.running.erase(id));
  parts_.victims.erase(id);
  return discount(job, attempt);
}

void Books::update_held(const model::Job& job, const model::Attempt& attempt) {
  const model::AttemptId id{job.id, attempt.number};
  note(parts_.running.put(id, latest_end(job, attempt), attempt.allocation, yields(job, attempt)));
  if (auto victim = victim_of(*policy_, parts_.holds, parts_.lending, job, attempt)) {
    parts_.victims.put(*std::move(victim));
  } else {
    parts_.victims.erase(id);
  }
}

Lending::Changes Books::count(const model::Job& job, const model::Attempt& attempt) {
  const base::Instant period = parts_.period_use->begin;
  note(parts_.quotas.add(organisation(), *job.spec, held_use(job, attempt, period),
                         attempt.gpu_type));
  const Lending::Held held = held_of(parts_.lending, *policy_, job, attempt);
  note(held.what.gpus != base::GpuShare());
  return parts_.lending.add(held);
}

Lending::Changes Books::discount(const model::Job& job, const model::Attempt& attempt) {
  const base::Instant period = parts_.period_use->begin;
  note(parts_.quotas.remove(organisation(), *job.spec, held_use(job, attempt, period),
                            attempt.gpu_type));
  const Lending::Held held = held_of(parts_.lending, *policy_, job, attempt);
  note(held.what.gpus != base::GpuShare());
  return parts_.lending.remove(held);
}

void Books::put(model::PreemptionHold hold) {
  for (const model::AttemptId id : hold.victims) parts_.victims.erase(id);
  parts_.holds.put(std::move(hold));
  note(true);
}

void Books::erase_hold(model::JobId beneficiary) {
  note(parts_.holds.erase(beneficiary));
}

void Books::put(model::Reservation reservation) {
  parts_.reservations.put(std::move(reservation));
  note(true);
}

void Books::erase_reservation(std::string_view name) {
  note(parts_.reservations.erase(name));
}

// A finished run teaches the next decision: no earlier decision is made anew for it.
void Books::add_run(const model::JobSpec& spec, base::Duration run) {
  parts_.history.add(spec, run);
}

void Books::add_used(const model::JobSpec& spec, const std::string& gpu_type,
                     std::uint64_t gpu_time) {
  if (gpu_time == 0) return;
  PeriodUse period_use = *parts_.period_use;
  for (const QuotaLimit& limit : limits_of(organisation(), spec)) {
    period_use.used[limit.subject][gpu_type] += gpu_time;
    parts_.quotas.add_used(limit, gpu_time, gpu_type);
    note(true);
  }
  parts_.period_use = std::move(period_use);
}

void Books::reorder(base::Shared<FairShareRanking> ranking) {
  note(parts_.queue.reorder(std::move(ranking)));
}

void Books::welcome(base::Shared<FairShareRanking> ranking) {
  note(parts_.queue.welcome(std::move(ranking)));
}

void Books::follow(Given given, const base::PersistentMap<model::Job>& jobs) {
  CHECK(given.policy == policy_);
  std::vector<model::AttemptId> spared;
  const PreemptionHolds before = parts_.holds;
  for (const auto& [job, hold] : before.all()) {
    const model::PreemptionHold* now = given.holds.find(job);
    if (now != nullptr && *now == hold) continue;
    erase_hold(job);
    spared.insert(spared.end(), hold.victims.begin(), hold.victims.end());
  }
  for (const auto& [job, hold] : given.holds.all()) {
    if (parts_.holds.find(job) == nullptr) put(hold);
  }
  for (const model::AttemptId id : spared) {
    const model::Job* job = jobs.find(id.job.value);
    if (job == nullptr) continue;
    const model::Attempt& attempt = job->attempts.at(id.attempt - 1);
    if (model::holds_resources(attempt.state)) update_held(*job, attempt);
  }
  parts_.reservations = std::move(given.reservations);
  parts_.history = std::move(given.history);
  parts_.budgets = std::move(given.budgets);
  parts_.queue.keep_budgets(!parts_.budgets->empty());
  if (given.period_use != parts_.period_use) follow_limits(jobs, std::move(given.period_use));
  reorder(std::move(given.ranking));
  note(true);
}

void Books::put(base::Shared<model::BudgetStates> budgets) {
  parts_.budgets = std::move(budgets);
  parts_.queue.keep_budgets(!parts_.budgets->empty());
  note(true);
}

void Books::follow(std::shared_ptr<const model::Policy> policy) {
  policy_ = std::move(policy);
  note(parts_.queue.reorder(*policy_));
}

void Books::follow_sharing(const base::PersistentMap<model::Node>& nodes) {
  const bool shares_anew = parts_.cluster.follow(policy_->sharing);
  const bool rates_anew = parts_.cluster.follow(policy_->load_rules);
  if (!shares_anew && !rates_anew) return;
  nodes.for_each([&](std::uint64_t, const model::Node& node) { put(node); });
  note(true);
}

void Books::follow_limits(const base::PersistentMap<model::Job>& jobs,
                          base::Shared<PeriodUse> period_use) {
  parts_.period_use = std::move(period_use);
  parts_.quotas = quotas_of(jobs, organisation(), *parts_.period_use);
  note(true);
}

void Books::follow_guarantees(Pools lending) {
  parts_.lending = std::move(lending);
  note(true);
}

}  // namespace gpu_platform::scheduling
