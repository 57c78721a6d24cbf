#include "controller/state.h"

#include <algorithm>
#include <utility>

#include "base/codec.h"
#include "base/hash.h"
#include "controller/budget_use.h"
#include "model/codec.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

namespace {

// The version of the snapshot's layout. Fields of jobs, nodes and policies may be appended without
// raising it (model/codec.h), and so may what stands at the end (encode_gpu_time,
// encode_tokens, encode_teams, encode_calibration, encode_money): a snapshot that ends before it is
// read. Anything else that changes here raises it.
constexpr std::uint64_t kVersion = 5;

std::unexpected<base::Error> damaged(std::string_view what) {
  return base::fail(base::ErrorCode::kDataLoss, fmt::format("snapshot: {} cannot be read", what));
}

void count(const model::Job& job, State& state) {
  using model::JobState;
  Counts& counts = state.counts;
  switch (job.state) {
    case JobState::kPending:
    case JobState::kPreempted:
      ++counts.pending;
      break;
    case JobState::kQueued:
      ++counts.queued;
      break;
    case JobState::kHeld:
      ++counts.held;
      break;
    case JobState::kSuspended:
      ++counts.suspended;
      break;
    case JobState::kStarting:
    case JobState::kRunning:
    case JobState::kStopping:
      ++counts.active;
      break;
    default:
      break;
  }
}

void encode_use(const scheduling::FairShareUse& use, base::Encoder& encoder) {
  encoder.i64(use.epoch().unix_ns());
  encoder.i64(use.counted_to().unix_ns());
  encoder.u64(use.accounts().size());
  for (const auto& [account, amounts] : use.accounts()) {
    encoder.text(account.team);
    encoder.text(account.user);
    encoder.u64(amounts.counted);
    encoder.u64(amounts.uncounted);
  }
}

scheduling::FairShareUse decode_use(base::Decoder& decoder) {
  const base::Instant epoch(decoder.i64());
  const base::Instant counted_to(decoder.i64());
  scheduling::FairShareUse::Accounts accounts;
  for (std::size_t left = decoder.count(); left > 0; --left) {
    std::string team(decoder.text());
    std::string user(decoder.text());
    scheduling::FairShareUse::Amounts& amounts = accounts[{std::move(team), std::move(user)}];
    amounts.counted = decoder.u64();
    amounts.uncounted = decoder.u64();
  }
  return {epoch, counted_to, std::move(accounts)};
}

// Of a snapshot of a version that did not keep what was granted.
void add_former_grant(const State& state, model::Attempt& attempt) {
  if (model::is_of(*attempt.granted, attempt.allocation)) return;
  attempt.granted = model::granted_of(attempt.allocation, state.nodes);
}

// Snapshots of former versions do not say how far the holders of GPUs are.
void tell_holders(State& state, const model::Job& job) {
  for (const model::Attempt& attempt : job.attempts) {
    if (!model::holds_resources(attempt.state)) continue;
    for (const model::NodeAllocation& part : attempt.allocation.nodes) {
      model::Node* const node = state.nodes.find_mutable(part.node.value);
      for (const model::GpuGrant& grant : part.grants) {
        if (node == nullptr || grant.gpu_index >= node->gpus.size()) continue;  // an invariant's
        model::set_phase(node->gpus[grant.gpu_index], {job.id, attempt.number},
                         model::phase_of(attempt));
      }
    }
  }
}

// Members of an array share their specification as long as none was changed.
void share_spec(const State& state, model::Job& job) {
  if (!job.is_member()) return;
  const model::Job* before = state.jobs.find(job.id.value - 1);
  if (before != nullptr && before->array_id == job.array_id && *before->spec == *job.spec) {
    job.spec = before->spec;
  }
}

// By subject alone; encode_gpu_time() adds the types.
void encode_period_use(const scheduling::PeriodUse& period, base::Encoder& encoder) {
  encoder.i64(period.begin.unix_ns());
  encoder.u64(period.used.size());
  for (const auto& [subject, by_type] : period.used) {
    encoder.u64(static_cast<std::uint64_t>(subject.holder));
    encoder.text(subject.name);
    std::uint64_t used = 0;
    for (const auto& [type, of_type] : by_type) used += of_type;
    encoder.u64(used);
  }
}

base::Result<scheduling::PeriodUse> decode_period_use(base::Decoder& decoder) {
  scheduling::PeriodUse period;
  period.begin = base::Instant(decoder.i64());
  for (std::size_t left = decoder.count(); left > 0; --left) {
    const std::uint64_t holder = decoder.u64();
    if (holder >= model::kQuotaHolders) return damaged("the use of a period");
    std::string name(decoder.text());
    period.used[{static_cast<model::QuotaHolder>(holder), std::move(name)}][""] = decoder.u64();
  }
  return period;
}

// The amounts that came later than the layout: of each subject the types of what it used, in the
// order of the period's subjects, and of each account its GPU-time.
void encode_gpu_time(const State& state, base::Encoder& encoder) {
  for (const auto& [subject, by_type] : state.books->period_use->used) {
    encoder.u64(by_type.size());
    for (const auto& [type, used] : by_type) {
      encoder.text(type);
      encoder.u64(used);
    }
  }
  for (const auto& [account, amounts] : state.use.accounts()) {
    encoder.u64(amounts.counted_gpu_time);
    encoder.u64(amounts.uncounted_gpu_time);
  }
}

void decode_gpu_time(base::Decoder& decoder, scheduling::PeriodUse& period,
                     scheduling::FairShareUse& use) {
  for (auto& [subject, by_type] : period.used) {
    by_type.clear();
    for (std::size_t left = decoder.count(); left > 0; --left) {
      std::string type(decoder.text());
      by_type[std::move(type)] = decoder.u64();
    }
  }
  scheduling::FairShareUse::Accounts accounts = use.accounts();
  for (auto& [account, amounts] : accounts) {
    amounts.counted_gpu_time = decoder.u64();
    amounts.uncounted_gpu_time = decoder.u64();
  }
  use = {use.epoch(), use.counted_to(), std::move(accounts)};
}

// Came later than the layout, too.
void encode_tokens(const State& state, base::Encoder& encoder) {
  encoder.u64(state.last_token_id);
  encoder.u64(state.tokens.size());
  std::string part;
  state.tokens.for_each([&](std::uint64_t, const model::Token& token) {
    model::append_token(token, part);
    encoder.text(part);
    part.clear();
  });
}

base::Status decode_tokens(base::Decoder& decoder, State& state) {
  state.last_token_id = decoder.u64();
  for (std::size_t left = decoder.count(); left > 0; --left) {
    TRY_ASSIGN(model::Token token, model::decode_token(decoder.text()));
    const std::uint64_t id = token.id.value;
    state.tokens.put(id, std::move(token));
  }
  return {};
}

// Came later than the layout, too. The configuration's teams are in the policy.
void encode_teams(const State& state, base::Encoder& encoder) {
  encoder.u64(state.teams->run_time.size());
  std::string part;
  for (const auto& [name, team] : state.teams->run_time) {
    model::append_run_time_team(team, part);
    encoder.text(part);
    part.clear();
  }
}

base::Result<model::RunTimeTeams> decode_teams(base::Decoder& decoder) {
  model::RunTimeTeams teams;
  for (std::size_t left = decoder.count(); left > 0; --left) {
    TRY_ASSIGN(model::RunTimeTeam team, model::decode_run_time_team(decoder.text()));
    std::string name = team.name;
    teams.emplace(std::move(name), std::move(team));
  }
  return teams;
}

void encode_durations(const std::vector<base::Duration>& durations, base::Encoder& encoder) {
  encoder.u64(durations.size());
  for (const base::Duration each : durations) encoder.i64(each.value());
}
std::vector<base::Duration> decode_durations(base::Decoder& decoder) {
  std::vector<base::Duration> durations;
  for (std::size_t left = decoder.count(); left > 0; --left) {
    durations.emplace_back(decoder.i64());
  }
  return durations;
}

void encode_runs(const scheduling::RunHistory& runs, base::Encoder& encoder) {
  encoder.u64(runs.buckets().size());
  runs.buckets().for_each([&](std::uint64_t number, const auto& bucket) {
    encoder.u64(number);
    encoder.u64(bucket.size());
    for (const scheduling::RunHistory::Digest& digest : bucket) {
      encoder.text(digest.key);
      encoder.u64(digest.runs.size());
      for (const scheduling::RunHistory::Run& run : digest.runs) encoder.i64(run.time.value());
    }
  });
}
base::Result<scheduling::RunHistory> decode_runs(base::Decoder& decoder) {
  scheduling::RunHistory runs;
  for (std::size_t left = decoder.count(); left > 0; --left) {
    const std::uint64_t number = decoder.u64();
    scheduling::RunHistory::Bucket bucket;
    for (std::size_t digests = decoder.count(); digests > 0; --digests) {
      std::string key(decoder.text());
      scheduling::RunHistory::Digest& digest = bucket.emplace_back(std::move(key));
      for (const base::Duration time : decode_durations(decoder)) {
        digest.runs.push_back({time, {}, {}});
      }
    }
    if (!runs.restore(number, std::move(bucket))) return damaged("the history of runs");
  }
  return runs;
}

void encode_scores(const scheduling::PredictionScores& scores, base::Encoder& encoder) {
  for (std::size_t basis = 0; basis < model::kPredictionBases; ++basis) {
    const auto& errors = scores.errors(static_cast<model::PredictionBasis>(basis));
    encoder.u64(errors.starts);
    encoder.u64(errors.by_then);
    encode_durations(errors.last, encoder);
  }
}
base::Result<scheduling::PredictionScores> decode_scores(base::Decoder& decoder) {
  scheduling::PredictionScores scores;
  for (std::size_t basis = 0; basis < model::kPredictionBases; ++basis) {
    scheduling::PredictionScores::Errors errors;
    errors.starts = decoder.u64();
    errors.by_then = decoder.u64();
    errors.last = decode_durations(decoder);
    if (!scores.restore(static_cast<model::PredictionBasis>(basis), std::move(errors))) {
      return damaged("the prediction scores");
    }
  }
  return scores;
}

// Came later than the layout, too: the time limit and the expected time of each run, in the order
// of the history, and what the predictions of starts learn from.
void encode_calibration(const State& state, base::Encoder& encoder) {
  state.books->history.buckets().for_each([&](std::uint64_t, const auto& bucket) {
    for (const scheduling::RunHistory::Digest& digest : bucket) {
      for (const scheduling::RunHistory::Run& run : digest.runs) {
        encoder.i64(run.limit.value());
        encoder.i64(run.expected.value());
      }
    }
  });
  for (std::size_t depth = 0; depth < scheduling::kDepths; ++depth) {
    for (std::size_t bound = 0; bound < scheduling::kStartBounds; ++bound) {
      const auto& outcomes =
          state.scores->calibration().outcomes(depth, static_cast<scheduling::StartBound>(bound));
      encoder.u64(outcomes.size());
      for (const std::uint32_t each : outcomes) encoder.u64(each);
    }
  }
}

base::Result<scheduling::RunHistory> decode_limits_of_runs(base::Decoder& decoder,
                                                           const scheduling::RunHistory& without) {
  scheduling::RunHistory history;
  bool is_valid = true;
  without.buckets().for_each([&](std::uint64_t number, scheduling::RunHistory::Bucket bucket) {
    for (scheduling::RunHistory::Digest& digest : bucket) {
      for (scheduling::RunHistory::Run& run : digest.runs) {
        run.limit = base::Duration(decoder.i64());
        run.expected = base::Duration(decoder.i64());
      }
    }
    is_valid = history.restore(number, std::move(bucket)) && is_valid;
  });
  if (!is_valid) return damaged("the limits of runs");
  return history;
}

base::Result<scheduling::StartCalibration> decode_calibration(base::Decoder& decoder) {
  scheduling::StartCalibration calibration;
  for (std::size_t depth = 0; depth < scheduling::kDepths; ++depth) {
    for (std::size_t bound = 0; bound < scheduling::kStartBounds; ++bound) {
      scheduling::StartCalibration::Outcomes outcomes;
      for (std::size_t left = decoder.count(); left > 0; --left) {
        const std::uint64_t outcome = decoder.u64();
        if (outcome > scheduling::StartCalibration::kLargest) decoder.reject();
        outcomes.push_back(static_cast<std::uint32_t>(outcome));
      }
      if (!calibration.restore(depth, static_cast<scheduling::StartBound>(bound),
                               std::move(outcomes))) {
        return damaged("the errors of predicted starts");
      }
    }
  }
  return calibration;
}

// Came later than the layout, too.
void encode_money(const State& state, base::Encoder& encoder) {
  std::string part;
  model::append_price_book(*state.prices, part);
  encoder.text(part);
  encoder.u64(state.books->budgets->size());
  for (const auto& [key, budget] : *state.books->budgets) {
    part.clear();
    model::append_budget_state(budget, part);
    encoder.text(part);
  }
  encoder.i64(state.accounts_since.unix_ns());
}

base::Result<model::BudgetStates> decode_budgets(base::Decoder& decoder) {
  model::BudgetStates budgets;
  for (std::size_t left = decoder.count(); left > 0; --left) {
    TRY_ASSIGN(model::BudgetState state, model::decode_budget_state(decoder.text()));
    const model::BudgetKey key = state.budget.key;
    budgets.emplace(key, std::move(state));
  }
  return budgets;
}

}  // namespace

std::optional<model::TargetOutcome> outcome_of(const State& state,
                                               const model::DependencyTarget& target) {
  if (target.whole_array) {
    const model::JobArray* array = state.arrays.find(target.job.value);
    return array == nullptr ? std::nullopt : std::optional(array->outcome);
  }
  const model::Job* job = state.jobs.find(target.job.value);
  if (job == nullptr) return std::nullopt;
  model::TargetOutcome outcome;
  model::count_end(*job, outcome);
  return outcome;
}

std::string encode_state(const State& state) {
  std::string out;
  base::Encoder encoder(out);
  encoder.u64(kVersion);
  encoder.u64(state.seq.value);
  encoder.i64(state.at.unix_ns());
  encoder.u64(state.last_job_id);
  encoder.u64(state.last_node_id);
  std::string part;
  auto put_part = [&] {
    encoder.text(part);
    part.clear();
  };
  model::append_policy(configured_policy(state), part);
  put_part();
  encoder.u64(state.nodes.size());
  state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    model::append_node(node, part);
    put_part();
  });
  encoder.u64(state.jobs.size());
  model::JobAppender jobs;
  state.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    jobs.append(job, part);
    put_part();
  });
  encoder.u64(state.arrays.size());
  state.arrays.for_each([&](std::uint64_t, const model::JobArray& array) {
    model::append_array(array, part);
    put_part();
  });
  encoder.u64(state.requests.size());
  for (const auto& [key, entry] : state.requests) {
    encoder.text(key.first);
    encoder.text(key.second);
    encoder.u64(entry.job.value);
    encoder.i64(entry.expires.unix_ns());
  }
  encode_use(state.use, encoder);
  encoder.u64(state.books->holds.all().size());
  for (const auto& [job, hold] : state.books->holds.all()) {
    model::append_preemption_hold(hold, part);
    put_part();
  }
  encode_period_use(*state.books->period_use, encoder);
  encoder.i64(state.limits_set_at.unix_ns());
  encoder.u64(state.books->reservations.all().size());
  for (const auto& [name, reservation] : state.books->reservations.all()) {
    model::append_reservation(reservation, part);
    put_part();
  }
  encode_runs(state.books->history, encoder);
  encode_scores(*state.scores, encoder);
  encoder.u64(state.relimited.size());
  for (const model::AttemptId id : state.relimited) {
    encoder.u64(id.job.value);
    encoder.u64(id.attempt);
  }
  encode_gpu_time(state, encoder);
  encode_tokens(state, encoder);
  encode_teams(state, encoder);
  encode_calibration(state, encoder);
  encode_money(state, encoder);
  return out;
}

base::Result<State> decode_state(std::string_view bytes) {
  base::Decoder decoder(bytes);
  State state;
  if (const std::uint64_t version = decoder.u64(); version != kVersion) {
    return base::fail(
        base::ErrorCode::kDataLoss,
        fmt::format("snapshot: version {} is not known to this program, which reads {}", version,
                    kVersion));
  }
  state.seq = model::EventSeq(decoder.u64());
  state.at = base::Instant(decoder.i64());
  state.last_job_id = decoder.u64();
  state.last_node_id = decoder.u64();
  TRY_ASSIGN(model::Policy policy, model::decode_policy(decoder.text()));
  model::TeamSources teams{*policy.organisation, {}};
  for (std::size_t left = decoder.count(); left > 0; --left) {
    TRY_ASSIGN(model::Node node, model::decode_node(decoder.text()));
    model::add_former_taints(node);
    const std::uint64_t id = node.id.value;
    state.nodes.put(id, std::move(node));
  }
  for (std::size_t left = decoder.count(); left > 0; --left) {
    TRY_ASSIGN(model::Job job, model::decode_job(decoder.text()));
    share_spec(state, job);
    for (model::Attempt& attempt : job.attempts) add_former_grant(state, attempt);
    tell_holders(state, job);
    const std::uint64_t id = job.id.value;
    state.jobs.put(id, std::move(job));
  }
  for (std::size_t left = decoder.count(); left > 0; --left) {
    TRY_ASSIGN(model::JobArray array, model::decode_array(decoder.text()));
    const std::uint64_t id = array.id.value;
    state.arrays.put(id, std::move(array));
  }
  for (std::size_t left = decoder.count(); left > 0; --left) {
    std::string user(decoder.text());
    std::string key(decoder.text());
    RequestEntry entry;
    entry.job = model::JobId(decoder.u64());
    entry.expires = base::Instant(decoder.i64());
    state.requests.emplace(std::pair{std::move(user), std::move(key)}, entry);
  }
  state.use = decode_use(decoder);
  scheduling::Books::Parts told;
  for (std::size_t left = decoder.count(); left > 0; --left) {
    TRY_ASSIGN(model::PreemptionHold hold, model::decode_preemption_hold(decoder.text()));
    told.holds.put(std::move(hold));
  }
  TRY_ASSIGN(scheduling::PeriodUse period_use, decode_period_use(decoder));
  state.limits_set_at = base::Instant(decoder.i64());
  for (std::size_t left = decoder.count(); left > 0; --left) {
    TRY_ASSIGN(model::Reservation reservation, model::decode_reservation(decoder.text()));
    told.reservations.put(std::move(reservation));
  }
  TRY_ASSIGN(told.history, decode_runs(decoder));
  TRY_ASSIGN(scheduling::PredictionScores scores, decode_scores(decoder));
  for (std::size_t left = decoder.count(); left > 0; --left) {
    const model::JobId job(decoder.u64());
    state.relimited.insert({job, static_cast<std::uint32_t>(decoder.u64())});
  }
  if (decoder.ok() && !decoder.at_end()) decode_gpu_time(decoder, period_use, state.use);
  if (decoder.ok() && !decoder.at_end()) TRY(decode_tokens(decoder, state));
  if (decoder.ok() && !decoder.at_end()) {
    TRY_ASSIGN(teams.run_time, decode_teams(decoder));
    policy.organisation = model::organisation_in_force(teams);
  }
  if (decoder.ok() && !decoder.at_end()) {
    TRY_ASSIGN(told.history, decode_limits_of_runs(decoder, told.history));
    TRY_ASSIGN(scheduling::StartCalibration calibration, decode_calibration(decoder));
    scores.restore(std::move(calibration));
  }
  if (decoder.ok() && !decoder.at_end()) {
    TRY_ASSIGN(state.prices, model::decode_price_book(decoder.text()));
    TRY_ASSIGN(told.budgets, decode_budgets(decoder));
    state.accounts_since = base::Instant(decoder.i64());
  }
  state.scores = std::move(scores);
  state.teams = std::move(teams);
  state.policy = std::make_shared<model::Policy>(std::move(policy));
  told.period_use = std::move(period_use);
  if (!decoder.ok() || !decoder.at_end()) return damaged("state");
  state.books = scheduling::Books(std::move(told));
  rebuild_indices(state);
  return state;
}

std::uint64_t state_hash(const State& state) {
  return base::hash64(encode_state(state));
}

model::Policy configured_policy(const State& state) {
  model::Policy policy = *state.policy;
  policy.organisation = state.teams->configured;
  return policy;
}

const model::Job* find_job(const State& state, model::JobId id) {
  return state.jobs.find(id.value);
}

std::uint64_t free_places(const State& state, const model::Node& node) {
  std::uint64_t places = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(node.gpus.size(), 64); ++i) {
    if (model::is_forgettable(node.gpus[i])) places |= std::uint64_t{1} << i;
  }
  if (places == 0) return 0;
  for (const auto& [name, reservation] : state.books->reservations.all()) {
    for (const model::ReservationPart& part : reservation.parts) {
      if (part.node == node.id) places &= ~part.gpus;
    }
  }
  return places;
}

const model::Attempt* find_attempt(const State& state, model::AttemptId id) {
  const model::Job* job = find_job(state, id.job);
  if (job == nullptr || id.attempt == 0 || id.attempt > job->attempts.size()) return nullptr;
  return &job->attempts[id.attempt - 1];
}

bool is_told_to_stop(const State& state, model::AttemptId id) {
  const model::Job* job = state.jobs.find(id.job.value);
  if (job == nullptr) return true;
  const model::AttemptState attempt = job->attempts.at(id.attempt - 1).state;
  return attempt != model::AttemptState::kRequested && attempt != model::AttemptState::kRunning;
}

bool is_stopped_by_person(const model::Attempt& attempt) {
  return attempt.stop_reason == model::EndReason::kCancelledBy ||
         attempt.stop_reason == model::EndReason::kKilledBy;
}

bool is_given_up_by_hardware(const model::Job& job) {
  if (!model::can_begin_anew(*job.spec)) return true;
  if (job.hardware_failures + 1 < model::kMaxHardwareFailures) return false;
  // A long job on many GPUs meets failures that have nothing to do with each other.
  const auto& attempts = job.attempts;
  const std::size_t first =
      attempts.size() - std::min<std::size_t>(attempts.size(), model::kMaxHardwareFailures);
  return attempts.back().requested_at - attempts.at(first).requested_at <
         model::kHardwareFailuresWithin;
}

bool goes_back(const model::Job& job, const model::Attempt& attempt) {
  switch (attempt.stop_reason) {
    case model::EndReason::kRequeuedBy:
    case model::EndReason::kPreempted:
      return true;
    case model::EndReason::kGpuOffline:
      return model::can_begin_anew(*job.spec);
    case model::EndReason::kGpuFault:
      return !is_given_up_by_hardware(job);
    default:
      return false;
  }
}

namespace {

// Returns whether the victim, which runs, may be stopped for the beneficiary, as both are now.
bool may_stop(const model::Policy& policy, model::PreemptionRule rule,
              const model::Job& beneficiary, const model::Job& victim) {
  if (rule == model::PreemptionRule::kReclaim) {
    return model::may_borrow(*victim.spec, policy) &&
           victim.preemptions < model::team_rules(policy, victim.spec->team).max_reclaims_per_job;
  }
  if (victim.preemptions >= policy.max_preemptions_per_job) return false;
  const model::PriorityClass own = beneficiary.spec->priority.priority_class;
  const model::PriorityClass other = victim.spec->priority.priority_class;
  const auto& stops_above = victim.attempts.back().stops_above;
  if (model::is_below(model::higher(other, stops_above.value_or(other)), own)) return true;
  return rule == model::PreemptionRule::kOverdue && other == own && !stops_above &&
         model::may_borrow(*victim.spec, policy);
}

}  // namespace

bool is_outranking(const State& state, const model::PreemptionHold& hold) {
  const model::Job* beneficiary = state.jobs.find(hold.beneficiary.value);
  return std::ranges::all_of(hold.victims, [&](model::AttemptId id) {
    if (is_told_to_stop(state, id)) return true;
    return may_stop(*state.policy, hold.rule, *beneficiary, *state.jobs.find(id.job.value));
  });
}

std::vector<std::string_view> differences(const Indices& a, const Indices& b) {
  const auto& [counts, load, node_ids, admission_gates, expiring_requests, held_attempts,
               limits_hours, token_index, taint_ends, health, budget_meters] = a;
  std::vector<std::string_view> found;
  const auto check = [&](std::string_view name, bool is_same) {
    if (!is_same) found.push_back(name);
  };
  check("counts", counts == b.counts);
  check("the load of users", load == b.load);
  check("the names of nodes", node_ids == b.node_ids);
  check("the admission gates", admission_gates == b.admission_gates);
  check("the lifetimes of request ids", expiring_requests == b.expiring_requests);
  check("the attempts that hold resources", held_attempts == b.held_attempts);
  check("whether hours are limited", limits_hours == b.limits_hours);
  check("the names and ends of tokens", token_index == b.token_index);
  check("the ends of taints", taint_ends == b.taint_ends);
  check("the evidence by job", health == b.health);
  check("what budgets spend", budget_meters == b.budget_meters);
  return found;
}

void rebuild_indices(State& state) {
  static_cast<Indices&>(state) = Indices();
  state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    state.node_ids.emplace(node.name, node.id);
    state.taint_ends.enter(node);
    state.health.enter(node);
  });
  state.arrays.for_each([&](std::uint64_t, const model::JobArray& array) {
    state.admission_gates.set_limit(array.id, array.limit);
  });
  std::map<std::uint64_t, std::uint64_t> unstarted;
  state.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (!job.is_member() || model::is_ended(job.state) || model::has_started(job)) return;
    ++unstarted[job.array_id.value];
  });
  for (const auto& [array, members] : unstarted) {
    // Older snapshots do not have it.
    const model::JobArray* found = state.arrays.find(array);
    if (found == nullptr || found->outcome.unstarted == members) continue;
    state.arrays.find_mutable(array)->outcome.unstarted = members;
  }
  state.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    count(job, state);
    state.load.enter(*job.spec);
    if (scheduling::counts_as_waiting(job.state)) state.load.begin_waiting(job.spec->uid);
    state.admission_gates.enter(job);
    for (const model::Attempt& attempt : job.attempts) {
      if (!model::holds_resources(attempt.state)) continue;
      state.held_attempts.insert({job.id, attempt.number});
    }
  });
  state.limits_hours = scheduling::limits_hours(*state.policy->organisation);
  state.tokens.for_each(
      [&](std::uint64_t, const model::Token& token) { state.token_index.enter(token); });
  for (const auto& [key, entry] : state.requests) {
    if (entry.expires.is_set()) state.expiring_requests.put(entry.expires, key);
  }
  state.books = scheduling::Books::of(
      state.jobs, state.nodes,
      {.policy = state.policy,
       .ranking = scheduling::FairShareRanking(*state.policy->organisation, state.use, {}),
       .holds = state.books->holds,
       .reservations = state.books->reservations,
       .history = state.books->history,
       .period_use = state.books->period_use,
       .budgets = state.books->budgets});
  state.budget_meters = meters_of(state);
}

}  // namespace gpu_platform::controller
