#include "simulation/faults/truth.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hash.h"
#include "model/job_spec.h"

namespace gpu_platform::simulation {

using model::AttemptId;

void Truth::process_started(const execution::StartOrder& order, base::Instant at) {
  const AttemptId id = order.attempt;
  note("start", id, at);
  Attempt& attempt = attempts_[id];
  if (++attempt.starts > 1) {
    findings_.violated("one-start", fmt::format("attempt {} of job {} was started {} times",
                                                id.attempt, id.job.value, attempt.starts));
  }
  attempt.is_alive = true;
  attempt.started_at = at;
  std::size_t gpus = 0;
  for (const execution::LaunchNode& part : order.nodes) {
    gpus += part.gpus.size();
    for (const execution::LaunchGpu& gpu : part.gpus) {
      take_gpu(id, gpu.info.uuid, gpu.grant.share);
      attempt.gpus.push_back(gpu.info.uuid);
    }
  }
  check_gang(order, gpus);
  check_one_run(id);
}

void Truth::take_gpu(AttemptId id, const std::string& uuid, base::GpuShare share) {
  Users& users = users_of_gpus_[uuid];
  base::GpuShare used = share;
  for (const auto& [other, of_other] : users) used += of_other;
  const auto user = users.begin();
  users.emplace(id, share);
  if (used <= base::kWholeGpu) return;
  findings_.violated(
      "gpu-exclusive",
      fmt::format("GPU {} was given to attempt {} of job {} while attempt {} of job {} has "
                  "processes on it",
                  uuid, id.attempt, id.job.value, user->first.attempt, user->first.job.value));
}

void Truth::leave_gpu(AttemptId id, const std::string& uuid) {
  const auto users = users_of_gpus_.find(uuid);
  if (users == users_of_gpus_.end()) return;
  users->second.erase(id);
  if (users->second.empty()) users_of_gpus_.erase(users);
}

void Truth::check_gang(const execution::StartOrder& order, std::size_t gpus) {
  const AttemptId id = order.attempt;
  if (gpus == model::total_gpus(order.spec->request)) return;
  findings_.violated("gang",
                     fmt::format("attempt {} of job {} was started with {} of {} GPUs", id.attempt,
                                 id.job.value, gpus, model::total_gpus(order.spec->request)));
}

void Truth::check_one_run(AttemptId id) {
  if (given_up_.contains(id)) return;  // it was given up while it was still on its way to its node
  for (auto other = attempts_.lower_bound({id.job, 0});
       other != attempts_.end() && other->first.job == id.job; ++other) {
    if (other->first == id || !other->second.is_alive || given_up_.contains(other->first)) continue;
    findings_.violated("one-run", fmt::format("attempts {} and {} of job {} run at the same time",
                                              other->first.attempt, id.attempt, id.job.value));
  }
}

void Truth::rank_started(const execution::StartOrder& order, RankOf which,
                         const std::vector<std::string>& gpus, base::Instant at) {
  const AttemptId id = order.attempt;
  note("start", id, at);
  Attempt& attempt = attempts_[id];
  if (!attempt.ranks_started.insert(which.rank).second) {
    findings_.violated("one-start", fmt::format("rank {} of attempt {} of job {} runs once more",
                                                which.rank, id.attempt, id.job.value));
  }
  for (const std::string& gpu : gpus) take_gpu(id, gpu, base::kWholeGpu);  // pods have whole ones
  attempt.gpus.insert(attempt.gpus.end(), gpus.begin(), gpus.end());
  attempt.ranks_alive[which.rank] = gpus;
  attempt.is_alive = true;
  if (attempt.ranks_started.size() == 1) check_one_run(id);
  if (attempt.ranks_started.size() < which.ranks) return;
  attempt.starts = 1;
  attempt.started_at = at;
  check_gang(order, attempt.gpus.size());
}

void Truth::rank_ended(AttemptId id, std::uint32_t rank, const model::Exit& exit,
                       base::Instant at) {
  note("end", id, at);
  Attempt& attempt = attempts_[id];
  attempt.exits.push_back(exit);
  for (const std::string& gpu : attempt.ranks_alive[rank]) leave_gpu(id, gpu);
  attempt.ranks_alive.erase(rank);
  attempt.is_alive = !attempt.ranks_alive.empty();
  attempt.has_ended = true;
  attempt.ended_at = at;
}

bool Truth::Attempt::ended_with(const model::Exit& end) const {
  if (exits.empty()) return has_ended && exit == end;
  return std::ranges::find(exits, end) != exits.end();
}

void Truth::process_ended(AttemptId id, const model::Exit& exit, base::Instant at) {
  note("end", id, at);
  Attempt& attempt = attempts_[id];
  attempt.has_ended = true;
  attempt.exit = exit;
  attempt.ended_at = at;
}

void Truth::processes_gone(AttemptId id, base::Instant at) {
  note("gone", id, at);
  Attempt& attempt = attempts_[id];
  attempt.is_alive = false;
  for (const std::string& gpu : attempt.gpus) leave_gpu(id, gpu);
}

void Truth::reset_began(const execution::ResetOrder& order, base::Instant at) {
  for (const std::string& uuid : order.gpu_uuids) {
    hash_ = base::hash64(uuid, hash_ + static_cast<std::uint64_t>(at.unix_ns()));
    const auto users = users_of_gpus_.find(uuid);
    if (users == users_of_gpus_.end()) continue;
    const model::AttemptId user = users->second.begin()->first;
    findings_.violated("reset", fmt::format("GPU {} is reset while attempt {} of job {} has "
                                            "processes on it",
                                            uuid, user.attempt, user.job.value));
  }
}

const Truth::Attempt* Truth::find(AttemptId attempt) const {
  const auto found = attempts_.find(attempt);
  return found == attempts_.end() ? nullptr : &found->second;
}

void Truth::note(std::string_view what, AttemptId attempt, base::Instant at) {
  const std::uint64_t numbers[] = {attempt.job.value, attempt.attempt,
                                   static_cast<std::uint64_t>(at.unix_ns())};
  hash_ = base::hash64(what, hash_);
  hash_ = base::hash64({reinterpret_cast<const char*>(numbers), sizeof numbers}, hash_);
}

}  // namespace gpu_platform::simulation
