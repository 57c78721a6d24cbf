#include "controller/invariants.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "controller/budget_use.h"
#include "controller/lending.h"
#include "controller/quota_use.h"
#include "controller/rest_kind.h"
#include "health/verdict.h"
#include "model/job_spec.h"
#include "scheduling/trial.h"

namespace gpu_platform::controller {

namespace {

using model::Attempt;
using model::Job;
using model::Node;
using Found = std::vector<std::string>;

const Attempt* holder_attempt(const State& state, const model::GpuHolder& holder) {
  const Job* job = state.jobs.find(holder.attempt.job.value);
  if (job == nullptr || holder.attempt.attempt == 0 ||
      holder.attempt.attempt > job->attempts.size()) {
    return nullptr;
  }
  return &job->attempts[holder.attempt.attempt - 1];
}

void check_gpu(const State& state, const Node& node, std::size_t index, Found& found) {
  const model::Gpu& gpu = node.gpus[index];
  base::GpuShare share;
  base::Bytes memory;
  for (const model::GpuHolder& holder : gpu.holders) {
    share += holder.share;
    memory += holder.memory;
    const Attempt* attempt = holder_attempt(state, holder);
    if (attempt == nullptr || !model::holds_resources(attempt->state)) {
      found.push_back(
          fmt::format("holders: {} GPU {} is held by attempt {} of job {}, which holds "
                      "nothing",
                      node.name, index, holder.attempt.attempt, holder.attempt.job.value));
    } else if (holder.phase != model::phase_of(*attempt)) {
      found.push_back(
          fmt::format("holders: {} GPU {} does not know how far attempt {} of job {} is", node.name,
                      index, holder.attempt.attempt, holder.attempt.job.value));
    }
  }
  if (share > base::kWholeGpu || memory > gpu.info.memory) {
    found.push_back(fmt::format("capacity: {} GPU {} is held by {} / 7000 and {} of {} bytes",
                                node.name, index, share.value(), memory.value(),
                                gpu.info.memory.value()));
  }
}

// Jobs that have parts of a GPU share it in one way; under MPS they are of one user. A job that has
// it alone has all of it.
void check_sharing(const Node& node, std::size_t index, Found& found) {
  const std::vector<model::GpuHolder>& holders = node.gpus[index].holders;
  if (holders.empty()) return;
  const auto violated = [&](std::string_view what) {
    found.push_back(fmt::format("sharing: {} GPU {} {}", node.name, index, what));
  };
  const model::GpuHolder& first = holders.front();
  for (const model::GpuHolder& holder : holders) {
    const bool is_whole = holder.share == base::kWholeGpu;
    if (is_whole != (holder.mode == model::ShareMode::kNone)) violated("is whole and in parts");
    if (holder.mode != first.mode) violated("is shared in two ways");
    if (holder.mode == model::ShareMode::kMps && holder.uid != first.uid) {
      violated("has MPS clients of two users");
    }
  }
}

// Snapshots of versions without a ledger have no clocks.
void check_clock(const State& state, const Node& node, std::size_t index, Found& found) {
  if (!state.accounts_since.is_set()) return;
  const model::GpuClock& clock = node.gpus[index].clock;
  const base::GpuShare rest = rest_of(node.gpus[index]);
  if (clock.since.is_set() && clock.since <= state.at && clock.rest == rest) return;
  found.push_back(
      fmt::format("books: the clock of {} GPU {} has {} / 7000 since {}; {} / 7000 of "
                  "the GPU are held by none at {}",
                  node.name, index, clock.rest.value(), clock.since.unix_ns(), rest.value(),
                  state.at.unix_ns()));
}

void check_rest_kinds(const State& state, const Node& node, Found& found) {
  if (!state.accounts_since.is_set()) return;
  for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
    const model::RestKind kind = node.gpus[i].clock.kind;
    const model::RestKind follows = rest_kind_of(state, node, i);
    if (kind == follows) continue;
    found.push_back(fmt::format("books: the clock of {} GPU {} says {}: it should be {}", node.name,
                                i, to_string(kind), to_string(follows)));
  }
}

// Its state follows from who keeps it from work and from who holds it, and from nothing else.
void check_state(const Node& node, std::size_t index, Found& found) {
  const model::Gpu& gpu = node.gpus[index];
  const model::GpuState follows = model::state_of(gpu);
  if (gpu.state == follows) return;
  const auto is_out = [](model::GpuState state) {
    return state == model::GpuState::kOffline || state == model::GpuState::kDraining;
  };
  found.push_back(fmt::format("{}: {} GPU {} is {} with {} taints and {} holders: it should be {}",
                              is_out(gpu.state) || is_out(follows) ? "taints" : "free", node.name,
                              index, to_string(gpu.state), gpu.taints.size(), gpu.holders.size(),
                              to_string(follows)));
}

// Ascending by time, and bounded.
void check_evidence(const std::string& of, const std::vector<model::Evidence>& evidence,
                    Found& found) {
  if (evidence.size() > health::kMaxKept) {
    found.push_back(fmt::format("evidence: {} has {} pieces, at most {}", of, evidence.size(),
                                health::kMaxKept));
  }
  if (!std::ranges::is_sorted(evidence, {}, &model::Evidence::at)) {
    found.push_back(fmt::format("evidence: that of {} is not in the order of time", of));
  }
  const auto is_backwards = [](const model::Evidence& piece) { return piece.last < piece.at; };
  if (std::ranges::any_of(evidence, is_backwards)) {
    found.push_back(fmt::format("evidence: a piece of {} ends before it begins", of));
  }
}

// Nothing may run on a GPU while it is reset.
void check_reset(const State& state, const Node& node, std::size_t index, Found& found) {
  const model::Gpu& gpu = node.gpus[index];
  const model::Taint* const reset = model::find_taint(gpu.taints, model::TaintSource::kReset);
  if (reset == nullptr || reset->effect != model::TaintEffect::kOut) return;
  for (const model::GpuHolder& holder : gpu.holders) {
    const Attempt* const attempt = holder_attempt(state, holder);
    if (attempt == nullptr) continue;  // check_gpu says so
    found.push_back(fmt::format("reset: {} GPU {} is being reset while attempt {} of job {} has it",
                                node.name, index, holder.attempt.attempt,
                                holder.attempt.job.value));
  }
}

void check_node(const State& state, const Node& node, Found& found) {
  if (const model::NodeState follows = model::state_of(node); node.state != follows) {
    found.push_back(fmt::format("taints: {} is {} with {} taints: it should be {}", node.name,
                                to_string(node.state), node.taints.size(), to_string(follows)));
  }
  if (node.cpus_used > node.cpus || node.memory_used > node.memory) {
    found.push_back(fmt::format("capacity: {} has {} of {} CPUs and {} of {} bytes in use",
                                node.name, node.cpus_used, node.cpus, node.memory_used.value(),
                                node.memory.value()));
  }
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    check_gpu(state, node, i, found);
    check_sharing(node, i, found);
    check_state(node, i, found);
    check_reset(state, node, i, found);
    check_clock(state, node, i, found);
    if (!node.gpus[i].evidence->empty()) {
      check_evidence(fmt::format("{} GPU {}", node.name, i), *node.gpus[i].evidence, found);
    }
  }
  if (!node.evidence->empty()) check_evidence(node.name, *node.evidence, found);
}

// Its nodes are of one engine, which can run it.
void check_engine(const State& state, const Job& job, const Attempt& attempt, Found& found) {
  std::optional<model::EngineKind> first;
  for (const model::NodeAllocation& part : attempt.allocation.nodes) {
    const Node* node = state.nodes.find(part.node.value);
    if (node == nullptr) continue;  // check_attempt says so
    if (!job.spec->request.engines.contains(node->engine) ||
        first.value_or(node->engine) != node->engine) {
      found.push_back(fmt::format("engine: attempt {} of job {} is on node {} of engine {}",
                                  attempt.number, job.id.value, node->name,
                                  model::to_string(node->engine)));
    }
    first = node->engine;
  }
}

// All that it asks for or nothing, in equal parts on nodes that it accepts.
void check_gang(const Job& job, const Attempt& attempt, Found& found) {
  const model::ResourceRequest& request = job.spec->request;
  const std::vector<model::NodeAllocation>& parts = attempt.allocation.nodes;
  if (attempt.allocation.gpu_count() != model::total_gpus(request)) {
    found.push_back(fmt::format("gang: attempt {} of job {} holds {} of {} GPUs", attempt.number,
                                job.id.value, attempt.allocation.gpu_count(),
                                model::total_gpus(request)));
  }
  if (!request.cross_node && parts.size() != request.nodes) {
    found.push_back(fmt::format("gang: attempt {} of job {} is on {} of {} nodes", attempt.number,
                                job.id.value, parts.size(), request.nodes));
  }
  const model::Tenant owner =
      model::is_part(request) ? model::Tenant{job.spec->uid, job.spec->team} : model::Tenant();
  if (attempt.allocation.tenant != owner) {
    found.push_back(fmt::format("gang: attempt {} of job {} is of another tenant", attempt.number,
                                job.id.value));
  }
  for (const model::NodeAllocation& part : parts) {
    const auto is_other = [&](const model::GpuGrant& grant) {
      return grant.share != request.share_per_gpu;
    };
    if (std::ranges::any_of(part.grants, is_other)) {
      found.push_back(fmt::format("gang: attempt {} of job {} holds another share of a GPU than {}",
                                  attempt.number, job.id.value,
                                  model::written(request.share_per_gpu)));
    }
    const bool is_named = std::ranges::binary_search(request.nodelist, part.node);
    if ((!request.nodelist.empty() && !is_named) ||
        std::ranges::binary_search(request.exclude, part.node)) {
      found.push_back(fmt::format("gang: attempt {} of job {} is on node {}, which it must not use",
                                  attempt.number, job.id.value, part.node.value));
    }
    if (part.grants.size() != parts.front().grants.size()) {
      found.push_back(fmt::format("gang: attempt {} of job {} has unequal parts", attempt.number,
                                  job.id.value));
    }
  }
}

void check_attempt(const State& state, const Job& job, const Attempt& attempt, Found& found) {
  if (!model::holds_resources(attempt.state)) return;
  check_gang(job, attempt, found);
  check_engine(state, job, attempt, found);
  const model::AttemptId id{job.id, attempt.number};
  for (const auto& part : attempt.allocation.nodes) {
    const Node* node = state.nodes.find(part.node.value);
    for (const auto& grant : part.grants) {
      const bool known =
          node != nullptr && grant.gpu_index < node->gpus.size() &&
          std::ranges::any_of(
              node->gpus[grant.gpu_index].holders,
              [&](const auto& holder) {
                return holder.attempt == id && holder.share == grant.share &&
                       holder.memory == grant.memory && holder.mode == grant.mode &&
                       model::Tenant{holder.uid, holder.team} == attempt.allocation.tenant;
              });
      if (!known) {
        found.push_back(
            fmt::format("holders: attempt {} of job {} has a grant of GPU {} of node {}, which "
                        "does not know it",
                        attempt.number, job.id.value, grant.gpu_index, part.node.value));
      } else if (!model::may_use_gpu(job.spec->request, node->gpus[grant.gpu_index].info.uuid)) {
        found.push_back(
            fmt::format("names: attempt {} of job {} has GPU {} of node {}, which it "
                        "must not use",
                        attempt.number, job.id.value, grant.gpu_index, part.node.value));
      }
    }
  }
}

bool is_released(const State& state, model::AttemptId id) {
  const Job* job = state.jobs.find(id.job.value);
  return job == nullptr || !model::holds_resources(job->attempts.at(id.attempt - 1).state);
}

// Only its victims hold resources of a preemption hold, and when they are gone all of it is free.
void check_hold(const State& state, const Job& job, const model::PreemptionHold& hold,
                Found& found) {
  const auto violated = [&](std::string_view what) {
    found.push_back(fmt::format("holds: job {} {}", job.id.value, what));
  };
  if (job.state != model::JobState::kQueued) {
    violated(fmt::format("has a preemption hold and is {}", to_string(job.state)));
  }
  for (const auto& part : hold.allocation.nodes) {
    const Node* node = state.nodes.find(part.node.value);
    if (node == nullptr) return violated("holds a node that is not there");
    const scheduling::GpuMask gpus = scheduling::gpus_of(part);
    if (node->state != model::NodeState::kUp ||
        (scheduling::gpus_in_service(*node) & gpus) != gpus) {
      violated("holds what is out of service");
    }
    for (const model::GpuGrant& gpu : part.grants) {
      base::GpuShare share = gpu.share;
      for (const model::GpuHolder& holder : node->gpus.at(gpu.gpu_index).holders) {
        if (std::ranges::binary_search(hold.victims, holder.attempt)) continue;
        share += holder.share;
        if (gpu.mode == holder.mode && share <= base::kWholeGpu) continue;  // beside it
        violated(fmt::format("holds {} GPU {}, which job {} holds and no victim", node->name,
                             gpu.gpu_index, holder.attempt.job.value));
      }
    }
  }
  const bool all_gone = std::ranges::all_of(
      hold.victims, [&](model::AttemptId id) { return is_released(state, id); });
  if (all_gone && !scheduling::is_free(state.books->cluster, hold.allocation)) {
    violated("has no victim left, and its resources are not free");
  }
}

// A job that waits for another job waits for one that can still end, or is ended at once.
void check_waits(const State& state, const Job& job, Found& found) {
  if (model::is_ended(job.state)) return;
  for (const model::Dependency& dependency : job.waits_for) {
    if (dependency.kind == model::DependencyKind::kSingleton) {
      const auto* open = state.admission_gates.open_of(AdmissionGates::name_of(*job.spec));
      if (open != nullptr && *open->begin() != job.id) continue;
      found.push_back(
          fmt::format("dependencies: job {} waits for earlier jobs of its name, and is "
                      "the first of them",
                      job.id.value));
      continue;
    }
    const auto outcome = outcome_of(state, dependency.on);
    if (!outcome || judge(dependency.kind, *outcome) != model::DependencyVerdict::kWaits) {
      found.push_back(fmt::format("dependencies: job {} waits for {}, which has been decided",
                                  job.id.value, to_string(dependency)));
    }
  }
  const bool is_past_gates = job.state == model::JobState::kQueued || model::is_active(job.state);
  if (is_past_gates && (!job.waits_for.empty() || !job.dependency_failure.empty())) {
    found.push_back(fmt::format("dependencies: job {} is {} before its dependencies are met",
                                job.id.value, to_string(job.state)));
  }
}

// A predicted start is never later than the planned start.
void check_prediction(const Job& job, const std::optional<model::StartPrediction>& of_job,
                      Found& found) {
  if (!of_job) return;
  const model::StartPrediction& prediction = *of_job;
  const bool is_predicted = prediction.p50.is_set();
  const bool is_ordered =
      !is_predicted || (prediction.made_at <= prediction.p50 && prediction.p50 <= prediction.p90 &&
                        prediction.p50 <= prediction.by_limits);
  const bool has_basis = prediction.basis != model::PredictionBasis::kHardLimits;
  if (!is_ordered || is_predicted != has_basis || prediction.made_at > prediction.by_limits) {
    found.push_back(fmt::format("prediction: that of job {} is in no order", job.id.value));
  }
  if (prediction.after.size() > model::kMaxNamedInPrediction) {
    found.push_back(fmt::format("prediction: that of job {} names too many", job.id.value));
  }
}

// Steps have numbers of their own, and run only within their attempt.
void check_steps(const Job& job, const Attempt& attempt, Found& found) {
  const model::JobSteps& steps = *attempt.steps;
  const auto violated = [&](std::size_t at, std::string_view what) {
    found.push_back(fmt::format("steps: step {} of attempt {} of job {} {}", steps[at]->number,
                                attempt.number, job.id.value, what));
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool runs = !steps[i]->ended_at.is_set();
    if (runs && !model::may_have_processes(attempt.state)) violated(i, "outlives it");
    if (i > 0 && steps[i]->number <= steps[i - 1]->number) violated(i, "is out of order");
  }
}

void check_one_job(const State& state, const Job& job, Found& found) {
  check_prediction(job, job.prediction, found);
  check_prediction(job, job.early_prediction, found);
  check_waits(state, job, found);
  std::size_t with_processes = 0;
  for (const Attempt& attempt : job.attempts) {
    check_attempt(state, job, attempt, found);
    check_steps(job, attempt, found);
    with_processes += model::may_have_processes(attempt.state) ? 1 : 0;
  }
  const std::size_t expected = model::is_active(job.state) ? 1 : 0;
  if (with_processes != expected) {
    found.push_back(
        fmt::format("one-process: job {} is {} with {} attempts that may have processes",
                    job.id.value, to_string(job.state), with_processes));
  }
  const bool is_held = job.state == model::JobState::kHeld;
  const bool waits = model::is_waiting(job.state) || job.state == model::JobState::kPreempted;
  if ((is_held && job.hold == model::Hold::kNone) || (waits && job.hold != model::Hold::kNone)) {
    found.push_back(fmt::format("held: job {} is {}, and {}", job.id.value, to_string(job.state),
                                is_held ? "has no hold" : "has a hold"));
  }
  // A job without an attempt is held by a repair of the store.
  const bool is_held_for_prolog = job.hold == model::Hold::kByPlatform && !job.attempts.empty() &&
                                  job.attempts.back().reason != model::EndReason::kEnvironmentLost;
  if (is_held_for_prolog && job.prolog_failed_on.size() < model::kMaxPrologFailures) {
    found.push_back(fmt::format("prolog: job {} is held for its prolog, which failed {} times",
                                job.id.value, job.prolog_failed_on.size()));
  }
  if (job.state == model::JobState::kRunning && !job.prolog_failed_on.empty()) {
    found.push_back(fmt::format("prolog: job {} runs, and still avoids nodes", job.id.value));
  }
  if (const model::PreemptionHold* hold = state.books->holds.find(job.id))
    check_hold(state, job, *hold, found);
  if (model::is_ended(job.state) && !model::holds_resources(job)) {
    found.push_back(
        fmt::format("conservation: job {} has ended and holds nothing, but is still in "
                    "the core",
                    job.id.value));
  }
}

void check_holds(const State& state, Found& found) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, model::JobId> held;
  for (const auto& [job, hold] : state.books->holds.all()) {
    if (state.jobs.find(job.value) == nullptr) {
      found.push_back(fmt::format("holds: job {} has a preemption hold and is gone", job.value));
    }
    for (const auto& part : hold.allocation.nodes) {
      for (const model::GpuGrant& gpu : part.grants) {
        const auto [other, is_first] = held.emplace(std::pair{part.node.value, gpu.gpu_index}, job);
        if (is_first) continue;
        found.push_back(fmt::format("holds: jobs {} and {} hold GPU {} of node {}",
                                    other->second.value, job.value, gpu.gpu_index,
                                    part.node.value));
      }
    }
  }
}

// Checks that an attempt may hold its GPUs as far as the reservation goes. The time limit counts
// from the decision to start it: starting and stopping take as long as they take.
void check_in_reservation(const State& state, const model::Reservation& reservation,
                          model::AttemptId id, Found& found) {
  const Job& job = *state.jobs.find(id.job.value);
  const Attempt& attempt = job.attempts.at(id.attempt - 1);
  if (std::ranges::binary_search(reservation.let_finish, id)) return;
  // A longer limit for the next attempt does not prolong an attempt that has ended.
  if (!model::may_have_processes(attempt.state)) return;
  const base::Instant end = attempt.requested_at + time_limit_of(job, attempt);
  const auto violated = [&](std::string_view what) {
    found.push_back(fmt::format("reservations: attempt {} of job {} {} reservation {}", id.attempt,
                                id.job.value, what, reservation.name));
  };
  if (job.spec->request.reservation == reservation.name) {
    if (!scheduling::lies_in(reservation, attempt.allocation))
      violated("holds more than is in its");
    const auto occurrence = occurrence_at(reservation, attempt.requested_at);
    if (!occurrence) {
      violated("was started outside of its");
    } else if (end > occurrence->end) {
      violated("may run longer than its");
    }
  } else if (scheduling::touches(reservation, attempt.allocation) &&
             occurrence_between(reservation, attempt.requested_at, end)) {
    violated("may hold what is in");
  }
}

void check_reservations(const State& state, Found& found) {
  for (const auto& [name, reservation] : state.books->reservations.all()) {
    if (reservation.begin >= reservation.end || reservation.parts.empty()) {
      found.push_back(fmt::format("reservations: reservation {} reserves nothing", name));
    }
    for (const auto& [other_name, other] : state.books->reservations.all()) {
      if (name < other_name && overlap(reservation, other)) {
        found.push_back(
            fmt::format("reservations: reservations {} and {} overlap", name, other_name));
      }
    }
    for (const model::AttemptId id : state.held_attempts) {
      check_in_reservation(state, reservation, id, found);
    }
  }
}

void check_token(const State& state, const model::Token& token, Found& found) {
  const auto violated = [&](std::string_view what) {
    found.push_back(fmt::format("tokens: token {} {}", token.id.value, what));
  };
  if (token.id.value > state.last_token_id) violated("has an id that was not given yet");
  if (token.uid == 0) violated("is of root");
  if (token.hash.size() != model::kTokenHashBytes) violated("has a hash of another size");
  if (token.expires_at.is_set() && token.expires_at <= token.created_at) {
    violated("ends before it began");
  }
  if (!token.made_with.valid()) return;
  const model::Token* parent = state.tokens.find(token.made_with.value);
  if (parent == nullptr) return violated("has outlived the token that it was made with");
  const bool lasts_longer = parent->expires_at.is_set() &&
                            (!token.expires_at.is_set() || token.expires_at > parent->expires_at);
  if (lasts_longer) violated("lasts longer than the token that it was made with");
  if (token.role > parent->role) violated("may do more than the token that it was made with");
  if (token.proven != parent->proven)
    violated("holds by other names than the one it was made with");
}

void check_tokens(const State& state, Found& found) {
  std::map<std::uint32_t, std::set<std::string>> names;
  state.tokens.for_each([&](std::uint64_t, const model::Token& token) {
    check_token(state, token, found);
    std::set<std::string>& of_user = names[token.uid];
    if (!of_user.insert(token.name).second) {
      found.push_back(fmt::format("tokens: user {} has two tokens {}", token.uid, token.name));
    }
    if (of_user.size() > model::kMaxTokensPerUser) {
      found.push_back(fmt::format("tokens: user {} has too many", token.uid));
    }
  });
  if (state.tokens.size() > model::kMaxTokens) found.push_back("tokens: there are too many");
}

void check_limits(const State& state, Found& found) {
  for (const model::AttemptId id : state.relimited) {
    const Job* job = state.jobs.find(id.job.value);
    const bool is_there = job != nullptr && id.attempt >= 1 && id.attempt <= job->attempts.size();
    if (is_there && model::may_have_processes(job->attempts[id.attempt - 1].state)) continue;
    found.push_back(fmt::format("limits: attempt {} of job {} is over and its time limit is kept",
                                id.attempt, id.job.value));
  }
}

void check_teams(const State& state, Found& found) {
  const model::TeamSources& sources = *state.teams;
  if (model::organisation_in_force(sources) != *state.policy->organisation) {
    found.push_back("teams: the policy has others than the configuration and people made");
  }
  if (sources.run_time.size() > model::kMaxRunTimeTeams) found.push_back("teams: too many");
  for (const auto& [name, team] : sources.run_time) {
    const auto is_member = [&](const std::string& user) {
      return std::ranges::find(team.members, user, &model::Member::user) != team.members.end();
    };
    if (std::ranges::any_of(team.invited, [&](const auto& each) { return is_member(each.user); })) {
      found.push_back(fmt::format("teams: {}: a member is invited", name));
    }
    if (!std::ranges::all_of(team.default_of, is_member)) {
      found.push_back(
          fmt::format("teams: {}: it is the default of users who are not members", name));
    }
  }
  for (const model::Team& team : state.policy->organisation->teams) {
    if (!sources.run_time.contains(team.name)) continue;
    const model::Team* configured = find_team(sources.configured, team.name);
    const bool is_as_configured = configured != nullptr && configured->quota == team.quota;
    if (const auto problem = model::problem_of(team.quota); problem && !is_as_configured) {
      found.push_back(fmt::format("teams: {}: {}", team.name, problem->text));
    }
    const model::Team* above = &team;
    for (std::size_t step = 0; above != nullptr; ++step) {
      if (step > state.policy->organisation->teams.size()) {
        found.push_back(fmt::format("teams: {} is below itself", team.name));
        break;
      }
      const std::string& parent = above->parent;
      above = parent.empty() ? nullptr : find_team(*state.policy->organisation, parent);
    }
  }
}

// CPUs and memory that attempts hold on each node against what the nodes say.
void check_sums(const State& state, Found& found) {
  std::map<std::uint64_t, std::pair<std::uint64_t, base::Bytes>> sums;
  state.jobs.for_each([&](std::uint64_t, const Job& job) {
    for (const Attempt& attempt : job.attempts) {
      if (!model::holds_resources(attempt.state)) continue;
      for (const auto& part : attempt.allocation.nodes) {
        auto& sum = sums[part.node.value];
        sum.first += part.cpus;
        sum.second += part.memory;
      }
    }
  });
  state.nodes.for_each([&](std::uint64_t id, const Node& node) {
    const auto& [cpus, memory] = sums[id];
    if (cpus != node.cpus_used || memory != node.memory_used) {
      found.push_back(fmt::format("holders: {} says {} CPUs in use, its attempts hold {}",
                                  node.name, node.cpus_used, cpus));
    }
  });
}

// Compares what arrays say of their members with the members.
void check_arrays(const State& state, Found& found) {
  struct Sum {
    std::uint64_t members = 0;
    std::uint64_t open = 0;
    std::uint64_t unstarted = 0;
    std::uint64_t in_queue = 0;
  };
  std::map<std::uint64_t, Sum> sums;
  state.jobs.for_each([&](std::uint64_t, const Job& job) {
    if (!job.is_member()) return;
    Sum& sum = sums[job.array_id.value];
    ++sum.members;
    sum.open += model::is_ended(job.state) ? 0 : 1;
    sum.unstarted += model::is_ended(job.state) || model::has_started(job) ? 0 : 1;
    const bool takes_place = job.state == model::JobState::kQueued || model::is_active(job.state);
    sum.in_queue += takes_place ? 1 : 0;
  });
  state.arrays.for_each([&](std::uint64_t id, const model::JobArray& array) {
    const Sum& sum = sums[id];
    if (sum.members != array.members || sum.open != array.outcome.open || sum.members == 0) {
      found.push_back(fmt::format("array: {} says {} members, {} not ended; there are {} and {}",
                                  id, array.members, array.outcome.open, sum.members, sum.open));
    }
    if (sum.unstarted != array.outcome.unstarted) {
      found.push_back(fmt::format("array: {} says that {} have not started; there are {}", id,
                                  array.outcome.unstarted, sum.unstarted));
    }
    if (array.limit != 0 && sum.in_queue > array.limit) {
      found.push_back(fmt::format("array: {} members of {} are active or in the queue, at most {}",
                                  sum.in_queue, id, array.limit));
    }
  });
  if (sums.size() != state.arrays.size()) found.push_back("array: a member's array is not known");
}

void check_indices(const State& state, Found& found) {
  auto again = decode_state(encode_state(state));
  if (!again) {
    found.push_back("indices: the state does not survive encoding: " + again.error().message);
    return;
  }
  for (const std::string_view name : differences(*again, state)) {
    found.push_back(fmt::format("indices: {} differ from what the truth gives", name));
  }
  for (const std::string_view name : scheduling::Books::differences(again->books, state.books)) {
    found.push_back(fmt::format("indices: {} differ from what the truth gives", name));
  }
  if (again->scores != state.scores) found.push_back("truth: the prediction scores differ");
}

}  // namespace

std::vector<std::string> check_invariants(const State& state) {
  Found found;
  state.nodes.for_each([&](std::uint64_t, const Node& node) {
    check_node(state, node, found);
    check_rest_kinds(state, node, found);
  });
  state.jobs.for_each([&](std::uint64_t, const Job& job) { check_one_job(state, job, found); });
  check_sums(state, found);
  check_holds(state, found);
  check_reservations(state, found);
  check_limits(state, found);
  check_tokens(state, found);
  check_teams(state, found);
  check_arrays(state, found);
  for (std::string& passed : passed_quotas(state)) found.push_back(std::move(passed));
  for (std::string& wrong : wrong_budgets(state)) found.push_back(std::move(wrong));
  for (std::string& passed : passed_guarantees(state)) found.push_back(std::move(passed));
  check_indices(state, found);
  return found;
}

std::vector<std::string> check_job(const State& state, model::JobId id) {
  Found found;
  const Job* job = state.jobs.find(id.value);
  if (job == nullptr) return found;
  check_one_job(state, *job, found);
  for (const Attempt& attempt : job->attempts) {
    if (!model::holds_resources(attempt.state)) continue;
    for (const auto& part : attempt.allocation.nodes) {
      const Node* node = state.nodes.find(part.node.value);
      if (node != nullptr) check_node(state, *node, found);
    }
  }
  return found;
}

}  // namespace gpu_platform::controller
