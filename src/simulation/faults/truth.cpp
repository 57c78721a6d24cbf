#include "simulation/faults/truth.h"

#include <fmt/format.h>

#include "base/hash.h"

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
    for (const model::GpuInfo& gpu : part.gpus) {
      const auto [user, is_free] = users_of_gpus_.try_emplace(gpu.uuid, id);
      if (!is_free) {
        findings_.violated("gpu-exclusive",
                           fmt::format("GPU {} was given to attempt {} of job {} while attempt {} "
                                       "of job {} has processes on it",
                                       gpu.uuid, id.attempt, id.job.value, user->second.attempt,
                                       user->second.job.value));
      }
      attempt.gpus.push_back(gpu.uuid);
    }
  }
  if (gpus != model::total_gpus(order.spec->request)) {
    findings_.violated(
        "gang", fmt::format("attempt {} of job {} was started with {} of {} GPUs", id.attempt,
                            id.job.value, gpus, model::total_gpus(order.spec->request)));
  }
  if (given_up_.contains(id)) return;  // it was given up while it was still on its way to its node
  for (auto other = attempts_.lower_bound({id.job, 0});
       other != attempts_.end() && other->first.job == id.job; ++other) {
    if (other->first == id || !other->second.is_alive || given_up_.contains(other->first)) continue;
    findings_.violated("one-run", fmt::format("attempts {} and {} of job {} run at the same time",
                                              other->first.attempt, id.attempt, id.job.value));
  }
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
  for (const std::string& gpu : attempt.gpus) {
    const auto user = users_of_gpus_.find(gpu);
    if (user != users_of_gpus_.end() && user->second == id) users_of_gpus_.erase(user);
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
