#include "controller/judge/admission.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/parse.h"
#include "model/access.h"
#include "model/job_size.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

using base::ErrorCode;

namespace {

bool is_privileged(const model::Caller& caller, const model::Policy& policy) {
  return model::has(caller, model::Right::kFillQueue) || caller.uid == policy.own_uid;
}

// Rounded down, without overflow.
std::uint64_t percent_of(std::uint64_t whole, std::uint32_t percent) {
  return whole / 100 * percent + whole % 100 * percent / 100;
}

std::unexpected<base::Error> full(std::string message, std::string field = {}) {
  return base::fail(ErrorCode::kResourceExhausted, std::move(message), std::move(field));
}

std::string share_of_root(const model::Policy& policy) {
  return fmt::format("the last {} % are root's (scheduling.percent_for_root)",
                     policy.percent_for_root);
}

// Checks the places in the queue; the caller's jobs may take `most` of them.
base::Status check_queue(const model::JobSpec& spec, const model::Policy& policy,
                         std::uint64_t waiting, std::uint64_t most) {
  const std::uint64_t jobs = spec.array ? member_count(*spec.array) : 1;
  const std::string whose =
      most < policy.max_queue_size ? ", of which " + share_of_root(policy) : std::string();
  if (spec.array && waiting + jobs > most) {
    return full(fmt::format("array: {} members do not fit: the queue has room for {} of {} "
                            "(scheduling.max_queue_size){}",
                            jobs, most - std::min(waiting, most), policy.max_queue_size, whose),
                "array");
  }
  if (waiting < most) return {};
  return full(
      fmt::format("the queue is full: {} jobs are waiting, which is the limit "
                  "(scheduling.max_queue_size){}; submit again when some of them have "
                  "started or ended",
                  waiting, whose));
}

base::Status check_waiting_of_user(const model::JobSpec& spec, const model::Policy& policy,
                                   std::uint64_t waiting) {
  const std::uint64_t jobs = spec.array ? member_count(*spec.array) : 1;
  const std::uint32_t percent = policy.max_queue_percent_per_user;
  if (percent >= 100) return {};  // only the limit of the queue applies
  const std::uint64_t most =
      policy.max_queue_size - percent_of(policy.max_queue_size, 100 - percent);
  if (waiting + jobs <= most) return {};
  const std::string asked = jobs == 1 ? std::string() : fmt::format(" and asks for {} more", jobs);
  return full(fmt::format("user {} has {} jobs waiting{}; the limit for one user is {}: {} % "
                          "(scheduling.max_queue_percent_per_user) of {} "
                          "(scheduling.max_queue_size); submit again when some of them have "
                          "started, or cancel some",
                          spec.user, waiting, asked, most, percent, policy.max_queue_size),
              spec.array ? "array" : "user");
}

// Checks the bytes of `had` and `more`. `whose`: "all jobs", "the jobs of user ann".
base::Status check_bytes(base::Bytes more, base::Bytes had, base::Bytes most,
                         std::string_view whose, std::string_view key) {
  if (more <= base::Bytes() || had + more <= most) return {};
  return full(fmt::format("the specification (command, paths, labels) would take {} bytes of "
                          "memory in addition to the {} of {}; the limit is {} ({}): pass less on "
                          "the command line, for example the name of a file, or submit again when "
                          "earlier jobs have ended",
                          more.value(), had.value(), whose, base::written(most), key),
              "command");
}

base::Status check_memory(const State& state, const model::Caller& caller, const std::string& user,
                          std::uint32_t uid, base::Bytes more) {
  const model::Policy& policy = *state.policy;
  const base::Bytes most = policy.max_specification_bytes;
  if (is_privileged(caller, policy)) {
    return check_bytes(more, state.load.in_all().specifications, most, "all jobs",
                       "scheduling.max_specification_bytes");
  }
  TRY(check_bytes(more, state.load.of(uid).specifications, policy.max_specification_bytes_per_user,
                  fmt::format("the jobs of user {}", user),
                  "scheduling.max_specification_bytes_per_user"));
  const auto whole = static_cast<std::uint64_t>(most.value());
  const base::Bytes for_root(static_cast<std::int64_t>(percent_of(whole, policy.percent_for_root)));
  return check_bytes(more, state.load.in_all().specifications, most - for_root, "all jobs",
                     fmt::format("scheduling.max_specification_bytes: {}, of which {}",
                                 base::written(most), share_of_root(policy)));
}

}  // namespace

base::Status check_queue_limits(const State& state, const model::Caller& caller,
                                const model::JobSpec& spec) {
  const model::Policy& policy = *state.policy;
  const bool is_whole = is_privileged(caller, policy);
  if (!is_whole) {
    TRY(check_waiting_of_user(spec, policy, state.load.of(spec.uid).waiting_jobs));
  }
  const std::uint64_t for_root =
      is_whole ? 0 : percent_of(policy.max_queue_size, policy.percent_for_root);
  TRY(check_queue(spec, policy, state.load.in_all().waiting_jobs,
                  policy.max_queue_size - for_root));
  const std::uint64_t jobs = spec.array ? member_count(*spec.array) : 1;
  return check_memory(state, caller, spec.user, spec.uid,
                      model::size_of(spec) * static_cast<std::int64_t>(jobs));
}

// Checks a longer name or more labels, which each member of an array may get by itself.
base::Status check_growth(const State& state, const model::Caller& caller, const model::Job& job,
                          const model::JobChanged& change) {
  const base::Bytes after = model::size_of(change.to.applied_to(*job.spec));
  return check_memory(state, caller, job.spec->user, job.spec->uid,
                      after - model::size_of(*job.spec));
}

}  // namespace gpu_platform::controller
