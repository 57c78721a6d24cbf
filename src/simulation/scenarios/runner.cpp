#include "simulation/scenarios/runner.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "controller/invariants.h"
#include "model/job_spec.h"
#include "simulation/scenarios/job_options.h"

namespace gpu_platform::simulation {

namespace {

std::unexpected<base::Error> failed(std::string message) {
  return base::fail(base::ErrorCode::kFailedPrecondition, std::move(message));
}

model::JobId job_in(const execution::Observation& observation) {
  if (const auto* started = std::get_if<execution::Started>(&observation)) {
    return started->attempt.job;
  }
  if (const auto* ended = std::get_if<execution::Ended>(&observation)) return ended->attempt.job;
  if (const auto* gone = std::get_if<execution::Cleaned>(&observation)) return gone->attempt.job;
  return {};
}

// Why a process may end by itself.
base::Result<model::EndReason> reason_of(std::string_view text) {
  if (text == "out_of_memory") return model::EndReason::kOutOfMemory;
  if (text == "idle_timeout") return model::EndReason::kIdleTimeout;
  if (text == "preempted") return model::EndReason::kPreempted;
  return failed("reason: only out_of_memory, idle_timeout and preempted can be asked for");
}

}  // namespace

ScenarioRunner::ScenarioRunner() : now_(kStart), engine_(*this, *this, this) {
  engine_.advance(now_);
}

const std::map<std::string, ScenarioRunner::Action, std::less<>>& ScenarioRunner::actions() {
  using R = ScenarioRunner;
  static const std::map<std::string, Action, std::less<>> kActions = {
      {"node", &R::node},
      {"policy", &R::policy},
      {"sharing", &R::sharing},
      {"team", &R::organisation},
      {"quota", &R::organisation},
      {"engines", &R::engines},
      {"submit", &R::submit},
      {"at", &R::at},
      {"after", &R::after},
      {"end", &R::end},
      {"cancel", &R::cancel},
      {"kill", &R::kill},
      {"hold", &R::hold},
      {"release", &R::release},
      {"requeue", &R::requeue},
      {"update", &R::update},
      {"all", &R::all},
      {"reserve", &R::reserve},
      {"change_reservation", &R::change_reservation},
      {"unreserve", &R::unreserve},
      {"lose", &R::lose},
      {"return", &R::return_node},
      {"reboot", &R::reboot},
      {"drain", &R::drain},
      {"offline", &R::offline},
      {"online", &R::online},
      {"service", &R::service},
      {"unavailable", &R::unavailable},
      {"degrade", &R::degrade},
      {"disk", &R::disk},
      {"restart", &R::restart},
      {"mute", &R::mute},
      {"deliver", &R::deliver},
      {"expect start", &R::expect_start},
      {"expect wait", &R::expect_wait},
      {"expect state", &R::expect_state},
      {"expect prediction", &R::expect_prediction},
      {"expect predicted", &R::expect_predicted},
      {"expect promise", &R::expect_promise},
      {"expect score", &R::expect_score},
      {"expect answer", &R::expect_answer},
      {"expect changed", &R::expect_changed},
      {"expect same", &R::expect_same},
      {"expect free", &R::expect_free},
      {"expect node", &R::expect_node},
      {"expect gpu", &R::expect_gpu},
      {"expect reserved", &R::expect_reserved},
  };
  return kActions;
}

base::Status ScenarioRunner::run(const Statement& statement) {
  if (!controller_) TRY(start_daemon());
  const auto action = actions().find(statement.verb);
  if (action == actions().end()) return failed("no such statement: " + statement.verb);
  TRY((this->*action->second)(statement));
  return settle();
}

base::Status ScenarioRunner::check_end() {
  if (!controller_) return {};
  const std::uint64_t live = controller::state_hash(controller_->core().state());
  TRY(start_daemon());
  if (controller::state_hash(controller_->core().state()) != live) {
    return failed("the journal does not give the state at the end");
  }
  return {};
}

// ---- the world

execution::VirtualRun ScenarioRunner::run_of(const execution::StartOrder& order) {
  execution::VirtualRun run;
  const NamedJob& job = jobs_[order.spec->name];
  run.start_delay = job.script.starts_after;
  run.duration = job.script.runs;
  run.exit.code = job.script.exit;
  run.ignores_term = job.script.ignores_term;
  run.cleaning_delay = job.script.cleaning;
  const bool is_on_bad_node = order.nodes.front().node_name == job.script.prolog_fails_on;
  if (is_on_bad_node || order.attempt.attempt <= job.script.prolog_failures) {
    run.prolog_failure = "the site's prolog: exit code 1";
  }
  if (job.script.epilog_fails) run.epilog_failure = "exit code 1";
  if (job.script.launch_exit) {
    run.exit.code = job.script.launch_exit;
    run.launch_error = "the program cannot be started";
  } else if (order.attempt.attempt <= job.script.launch_failures) {
    run.exit = {};
    run.launch_error = "the host cannot start it";
  }
  return run;
}

void ScenarioRunner::process_started(const execution::StartOrder& order, base::Instant) {
  ++jobs_[order.spec->name].starts[order.attempt];
}

void ScenarioRunner::observe(execution::Observation observation) {
  if (muted_.contains(job_in(observation))) {
    kept_back_.push_back(std::move(observation));
  } else {
    inputs_.emplace_back(std::move(observation));
  }
}

base::Status ScenarioRunner::start_daemon() {
  controller_.reset();
  inputs_.clear();
  store_.crash();
  controller_.emplace(store_, engine_);
  TRY(controller_->recover(now_));
  inputs_.emplace_back(controller::PolicyChange{configuration_.policy, "configuration"});
  engine_.announce_nodes();
  return {};
}

base::Status ScenarioRunner::step() {
  std::vector<controller::Input> inputs = std::exchange(inputs_, {});
  TRY(controller_->step(inputs, now_));
  const auto violations = controller::check_invariants(controller_->core().state());
  if (!violations.empty()) return failed("an invariant does not hold: " + violations.front());
  const auto wakeup = controller_->next_wakeup();
  if (wakeup && *wakeup <= now_) return failed("the controller wants to be woken in the past");
  return {};
}

base::Status ScenarioRunner::settle() {
  engine_.advance(now_);
  for (int rounds = 0; !inputs_.empty(); ++rounds) {
    if (rounds > 1000) return failed("the world does not come to rest at this moment");
    TRY(step());
    engine_.advance(now_);
  }
  return {};
}

base::Status ScenarioRunner::advance_to(base::Instant when) {
  while (now_ < when) {
    base::Instant next = when;
    if (const auto at = engine_.next_event()) next = std::min(next, *at);
    const auto wakeup = controller_->next_wakeup();
    if (wakeup) next = std::min(next, *wakeup);
    now_ = std::max(now_, next);
    engine_.advance(now_);
    if (wakeup && *wakeup <= now_) TRY(step());
    TRY(settle());
  }
  return {};
}

// ---- statements

base::Status ScenarioRunner::node(const Statement& statement) {
  TRY_ASSIGN(const model::NodeInfo info, node_of(statement));
  nodes_[info.name] = info;
  boots_[info.name] = 1;
  engine_.put_node(info);
  return {};
}

// The engines that the site has from here on.
base::Status ScenarioRunner::engines(const Statement& statement) {
  model::Policy& policy = configuration_.policy;
  for (const model::EngineKind kind : model::kAllEngineKinds) policy.set_engine(kind, false);
  policy.has_containers = false;
  for (const std::string& engine : parts_of(statement.arguments[0])) {
    if (const auto kind = model::parse_engine_kind(engine)) {
      policy.set_engine(*kind, true);
    } else if (engine == "containers") {
      policy.has_containers = true;
    } else {
      return failed("engines: process, containers or kubernetes");
    }
  }
  inputs_.emplace_back(controller::PolicyChange{policy, "root"});
  return {};
}

base::Status ScenarioRunner::policy(const Statement& statement) {
  TRY(change_policy(statement, configuration_));
  inputs_.emplace_back(controller::PolicyChange{configuration_.policy, "root"});
  return {};
}

base::Status ScenarioRunner::sharing(const Statement& statement) {
  TRY(change_sharing(statement, configuration_.policy));
  inputs_.emplace_back(controller::PolicyChange{configuration_.policy, "root"});
  return {};
}

base::Status ScenarioRunner::organisation(const Statement& statement) {
  TRY(change_organisation(statement, configuration_.policy));
  inputs_.emplace_back(controller::PolicyChange{configuration_.policy, "root"});
  return {};
}

base::Status ScenarioRunner::command(model::Command command) {
  answer_.is_given = false;
  inputs_.emplace_back(controller::CommandInput{
      std::move(command),
      [this](base::Result<model::CommandReply> reply) { answer_ = {std::move(reply), true}; }});
  TRY(settle());
  if (!answer_.is_given) return failed("the command was never answered");
  return {};
}

base::Status ScenarioRunner::submit(const Statement& statement) {
  TRY_ASSIGN(model::JobSpec spec, spec_of(statement));
  TRY_ASSIGN(spec.request.nodelist, find_nodes(statement, "nodelist"));
  TRY_ASSIGN(spec.request.exclude, find_nodes(statement, "exclude"));
  TRY_ASSIGN(spec.request.gpus_avoid, find_gpus(statement, "gpus-avoid"));
  TRY_ASSIGN(spec.request.gpus_only, find_gpus(statement, "gpus-only"));
  NamedJob& job = jobs_[spec.name];
  if (job.id.valid()) return failed(fmt::format("job '{}' was submitted before", spec.name));
  TRY_ASSIGN(job.script, script_of(statement));
  job.array = spec.array;
  bool hold = false;
  TRY(set_bool(statement, "hold", hold));
  TRY(set_instant(statement, "begin", spec.begin));
  TRY(set_instant(statement, "deadline", spec.deadline));
  model::SubmitJob submission{spec, {}, hold, {}};
  if (const std::string* text = option(statement, "dependency")) {
    TRY(resolve(*text, submission.spec.dependencies, submission.ended));
  }
  TRY(command({model::caller_with_uid(spec.user, spec.uid), std::move(submission)}));
  if (answer_.reply) jobs_[spec.name].id = answer_.reply->job;
  return {};
}

base::Status ScenarioRunner::at(const Statement& statement) {
  TRY_ASSIGN(const base::Duration when, base::parse_duration(statement.arguments[0]));
  if (kStart + when < now_) return failed("this time has passed");
  return advance_to(kStart + when);
}

base::Status ScenarioRunner::after(const Statement& statement) {
  TRY_ASSIGN(const base::Duration pause, base::parse_duration(statement.arguments[0]));
  return advance_to(now_ + pause);
}

base::Status ScenarioRunner::end(const Statement& statement) {
  TRY_ASSIGN(const model::Job job, find_job(statement.arguments[0]));
  TRY_ASSIGN(const model::Exit exit, exit_of(statement));
  model::EndReason reason = model::EndReason::kNone;
  if (const std::string* text = option(statement, "reason")) {
    TRY_ASSIGN(reason, reason_of(*text));
  }
  std::uint32_t attempt = 0;
  for (const auto& [id, count] : jobs_[job.spec->name].starts) {
    if (id.job == job.id) attempt = id.attempt;
  }
  TRY(set_count(statement, "attempt", 1, 1000, attempt));
  if (!engine_.finish({job.id, attempt}, exit, reason)) {
    return failed(
        fmt::format("job '{}' has no process in attempt {}", statement.arguments[0], attempt));
  }
  return {};
}

base::Status ScenarioRunner::cancel(const Statement& statement) {
  return act(statement, model::JobAction::kCancel);
}

base::Status ScenarioRunner::kill(const Statement& statement) {
  return act(statement, model::JobAction::kKill);
}

base::Status ScenarioRunner::hold(const Statement& statement) {
  return act(statement, model::JobAction::kHold);
}

base::Status ScenarioRunner::release(const Statement& statement) {
  return act(statement, model::JobAction::kRelease);
}

base::Status ScenarioRunner::requeue(const Statement& statement) {
  bool hold = false;
  TRY(set_bool(statement, "hold", hold));
  return act(statement, hold ? model::JobAction::kRequeueAndHold : model::JobAction::kRequeue);
}

model::Caller ScenarioRunner::caller_of(const Statement& statement, const std::string& job) const {
  std::string user = "ann";
  if (const auto found = find_job(job)) user = found->spec->user;
  if (const std::string* by = option(statement, "by")) user = *by;
  const std::uint32_t uid = uid_of_user(user);
  return model::caller_with_uid(user, uid);
}

base::Status ScenarioRunner::act(const Statement& statement, model::JobAction action) {
  const std::string& name = statement.arguments[0];
  TRY_ASSIGN(const model::DependencyTarget target, find_target(name));
  return command(
      {caller_of(statement, name), model::ActOnJob{target.job, action, target.whole_array}});
}

base::Status ScenarioRunner::update(const Statement& statement) {
  const std::string& name = statement.arguments[0];
  TRY_ASSIGN(const model::DependencyTarget target, find_target(name));
  model::UpdateJob update;
  TRY(read_patch(statement, update.to));
  update.job = target.job;
  update.whole_array = target.whole_array;
  for (const auto& [name_of_time, member] : {std::pair{"begin", &model::JobSpec::begin},
                                             std::pair{"deadline", &model::JobSpec::deadline}}) {
    if (option(statement, name_of_time) == nullptr) continue;
    base::Instant at;
    TRY(set_instant(statement, name_of_time, at));
    update.to.set(member, at);
  }
  for (const auto& [name_of_nodes, member] :
       {std::pair{"nodelist", &model::ResourceRequest::nodelist},
        std::pair{"exclude", &model::ResourceRequest::exclude}}) {
    const std::string* text = option(statement, name_of_nodes);
    if (text == nullptr) continue;
    std::vector<model::NodeId> nodes;
    if (*text != "none") {
      TRY_ASSIGN(nodes, find_nodes(statement, name_of_nodes));
    }
    update.to.set(member, std::move(nodes));
  }
  for (const auto& [name_of_gpus, member] :
       {std::pair{"gpus-avoid", &model::ResourceRequest::gpus_avoid},
        std::pair{"gpus-only", &model::ResourceRequest::gpus_only}}) {
    const std::string* text = option(statement, name_of_gpus);
    if (text == nullptr) continue;
    std::vector<std::string> gpus;
    if (*text != "none") {
      TRY_ASSIGN(gpus, find_gpus(statement, name_of_gpus));
    }
    update.to.set(member, std::move(gpus));
  }
  if (const std::string* text = option(statement, "dependency")) {
    std::vector<model::Dependency> asked;
    TRY(resolve(*text, asked, update.ended));
    update.to.set(&model::JobSpec::dependencies, std::move(asked));
  }
  return command({caller_of(statement, name), std::move(update)});
}

base::Status ScenarioRunner::all(const Statement& statement) {
  TRY_ASSIGN(model::ActOnJobs many, bulk_of(statement));
  return command({caller_of(statement, {}), std::move(many)});
}

base::Status ScenarioRunner::lose(const Statement& statement) {
  TRY_ASSIGN(const model::NodeInfo* info, find_info(statement.arguments[0]));
  engine_.disconnect(info->name, "no answer for 30 s");
  return {};
}

base::Status ScenarioRunner::return_node(const Statement& statement) {
  TRY_ASSIGN(const model::NodeInfo* info, find_info(statement.arguments[0]));
  engine_.reconnect(info->name);
  return {};
}

base::Status ScenarioRunner::reboot(const Statement& statement) {
  TRY_ASSIGN(const model::NodeInfo* known, find_info(statement.arguments[0]));
  model::NodeInfo info = *known;
  info.boot_id = fmt::format("boot-{}", ++boots_[info.name]);
  nodes_[info.name].boot_id = info.boot_id;
  if (option(statement, "without_gpu") != nullptr) {
    std::uint64_t missing = 0;
    TRY(set_count(statement, "without_gpu", 0, info.gpus.size() - 1, missing));
    info.gpus.erase(info.gpus.begin() + static_cast<std::ptrdiff_t>(missing));
  }
  engine_.reboot(info);
  return {};
}

base::Status ScenarioRunner::drain(const Statement& statement) {
  return change_gpus(statement, model::GpuAction::kDrain);
}

base::Status ScenarioRunner::offline(const Statement& statement) {
  return change_gpus(statement, model::GpuAction::kTakeOffline);
}

base::Status ScenarioRunner::online(const Statement& statement) {
  return change_gpus(statement, model::GpuAction::kBringOnline);
}

// root changes them.
base::Status ScenarioRunner::change_gpus(const Statement& statement, model::GpuAction action) {
  model::ChangeGpus change;
  change.action = action;
  TRY_ASSIGN(const model::NodeInfo* info, find_info(statement.arguments[0]));
  change.which.node = info->name;
  if (option(statement, "gpu") != nullptr) {
    std::uint32_t index = 0;
    TRY(set_count(statement, "gpu", 0, info->gpus.size() - 1, index));
    change.which.index = index;
  }
  TRY(set_bool(statement, "force", change.force));
  return command({model::root_caller(), std::move(change)});
}

// The node's cluster tells what it lets the node do.
base::Status ScenarioRunner::service(const Statement& statement) {
  TRY_ASSIGN(const model::NodeInfo* info, find_info(statement.arguments[0]));
  execution::TaintObserved seen{.node_name = info->name, .gpu_uuid = {}};
  const std::string& what = statement.arguments[1];
  if (what == "draining") {
    seen.effect = model::TaintEffect::kNoNewWork;
  } else if (what == "offline") {
    seen.effect = model::TaintEffect::kOut;
  } else if (what != "up") {
    return failed("a node's service is up, draining or offline");
  }
  if (const std::string* cause = option(statement, "cause")) seen.text = *cause;
  inputs_.emplace_back(execution::Observation(std::move(seen)));
  return {};
}

// The node's cluster reports a GPU as not available to the platform, or, without a text, as
// available.
base::Status ScenarioRunner::unavailable(const Statement& statement) {
  TRY_ASSIGN(const model::NodeInfo* info, find_info(statement.arguments[0]));
  std::size_t gpu = 0;
  TRY(set_count(statement, "gpu", 0, info->gpus.size() - 1, gpu));
  const std::string* text = option(statement, "text");
  execution::TaintObserved seen{.node_name = info->name, .gpu_uuid = info->gpus[gpu].uuid};
  if (text != nullptr) {
    seen.effect = model::TaintEffect::kAvoided;
    seen.text = *text;
  }
  inputs_.emplace_back(execution::Observation(std::move(seen)));
  return {};
}

// The node's cluster says that a GPU is DEGRADED, or, without a text, that it is well again. Health
// comes to judgements of its own.
base::Status ScenarioRunner::degrade(const Statement& statement) {
  TRY_ASSIGN(const model::NodeInfo* info, find_info(statement.arguments[0]));
  std::size_t gpu = 0;
  TRY(set_count(statement, "gpu", 0, info->gpus.size() - 1, gpu));
  execution::TaintObserved seen{.node_name = info->name, .gpu_uuid = info->gpus[gpu].uuid};
  if (const std::string* text = option(statement, "text")) {
    seen.effect = model::TaintEffect::kDegraded;
    seen.text = *text;
  }
  inputs_.emplace_back(execution::Observation(std::move(seen)));
  return {};
}

base::Status ScenarioRunner::disk(const Statement& statement) {
  const std::string& what = statement.arguments[0];
  if (what != "full" && what != "free") return failed("the disk is full or free");
  store_.set_headroom(what == "full" ? store::Headroom::kReserved : store::Headroom::kAmple);
  return {};
}

// The daemon is killed and, after a while, started again; what happens meanwhile is not heard.
base::Status ScenarioRunner::restart(const Statement& statement) {
  base::Duration pause;
  TRY(set_duration(statement, "after", pause));
  const std::uint64_t before = controller::state_hash(controller_->core().state());
  controller_.reset();
  now_ = now_ + pause;
  engine_.advance(now_);
  TRY(start_daemon());
  if (controller::state_hash(controller_->core().state()) != before) {
    return failed("the journal does not give the state before the restart");
  }
  return {};
}

base::Status ScenarioRunner::mute(const Statement& statement) {
  TRY_ASSIGN(const model::Job job, find_job(statement.arguments[0]));
  muted_.insert(job.id);
  return {};
}

base::Status ScenarioRunner::deliver(const Statement& statement) {
  const auto found = jobs_.find(statement.arguments[0]);
  if (found == jobs_.end()) return failed("no such job: " + statement.arguments[0]);
  muted_.erase(found->second.id);
  for (execution::Observation& kept : std::exchange(kept_back_, {})) observe(std::move(kept));
  return {};
}

// ---- what is there

base::Result<model::DependencyTarget> ScenarioRunner::find_target(const std::string& name) const {
  const auto unknown =
      base::fail(base::ErrorCode::kNotFound, fmt::format("there is no job '{}'", name));
  const auto found = jobs_.find(name);
  if (found != jobs_.end()) {
    return model::DependencyTarget{found->second.id, found->second.array.has_value()};
  }
  const std::size_t bar = name.rfind('_');
  if (bar == std::string::npos) return unknown;
  const auto array = jobs_.find(name.substr(0, bar));
  const auto index = base::parse_count(name.substr(bar + 1), 0, model::kLargestArrayIndex);
  if (array == jobs_.end() || !array->second.array || !index) return unknown;
  const auto position = position_of(*array->second.array, static_cast<std::uint32_t>(*index));
  if (!position) return unknown;
  return model::DependencyTarget{model::JobId(array->second.id.value + *position), false};
}

base::Status ScenarioRunner::set_instant(const Statement& statement, std::string_view name,
                                         base::Instant& value) const {
  const std::string* text = option(statement, name);
  if (text == nullptr || *text == "none") return {};
  base::Duration since_start;
  TRY(set_duration(statement, name, since_start));
  value = kStart + since_start;
  return {};
}

base::Result<model::TargetOutcome> ScenarioRunner::archived_outcome(
    const model::DependencyTarget& target, std::uint64_t size) const {
  model::TargetOutcome outcome;
  for (std::uint64_t position = 0; position < size; ++position) {
    TRY_ASSIGN(const std::optional<model::Job> job,
               store_.find(model::JobId(target.job.value + position)));
    if (!job) return failed("what the dependency names was never accepted");
    model::count_end(*job, outcome);
  }
  return outcome;
}

// "afterok:a:b_3,afterany:c"; "none" for no dependency.
base::Status ScenarioRunner::resolve(const std::string& text, std::vector<model::Dependency>& asked,
                                     std::vector<model::EndedTarget>& ended) const {
  using Kind = model::DependencyKind;
  if (text == "none") return {};
  for (const std::string& part : parts_of(text)) {
    std::string_view rest = part;
    std::optional<Kind> kind;
    if (part == to_string(Kind::kSingleton)) {
      asked.push_back({Kind::kSingleton, {}});
      continue;
    }
    for (const Kind candidate : model::kAllDependencyKinds) {
      if (rest.starts_with(fmt::format("{}:", to_string(candidate)))) kind = candidate;
    }
    if (!kind) return failed(fmt::format("dependency: '{}' is not understood", part));
    rest.remove_prefix(to_string(*kind).size());
    while (!rest.empty()) {
      rest.remove_prefix(1);
      const std::string name(rest.substr(0, rest.find(':')));
      rest.remove_prefix(name.size());
      TRY_ASSIGN(const model::DependencyTarget target, find_target(name));
      asked.push_back({*kind, target});
      if (controller::outcome_of(controller_->core().state(), target)) continue;
      const auto array = jobs_.find(name);
      const std::uint64_t size = target.whole_array ? member_count(*array->second.array) : 1;
      TRY_ASSIGN(const model::TargetOutcome outcome, archived_outcome(target, size));
      ended.push_back({target, outcome});
    }
  }
  return {};
}

// Returns the first member if it is an array.
base::Result<model::Job> ScenarioRunner::find_job(const std::string& name) const {
  TRY_ASSIGN(const model::DependencyTarget target, find_target(name));
  const model::Job* live = controller_->core().state().jobs.find(target.job.value);
  if (live != nullptr) return *live;
  TRY_ASSIGN(const std::optional<model::Job> archived, store_.find(target.job));
  if (archived) return *archived;
  return base::fail(base::ErrorCode::kNotFound,
                    fmt::format("job '{}' is neither in the core nor in the archive", name));
}

base::Result<const model::NodeInfo*> ScenarioRunner::find_info(const std::string& name) const {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) {
    return base::fail(base::ErrorCode::kNotFound, fmt::format("there is no node '{}'", name));
  }
  return &found->second;
}

base::Result<const model::Node*> ScenarioRunner::find_node(const std::string& name) const {
  const controller::State& state = controller_->core().state();
  const auto found = state.node_ids.find(name);
  if (found == state.node_ids.end()) {
    return base::fail(base::ErrorCode::kNotFound, fmt::format("there is no node '{}'", name));
  }
  return state.nodes.find(found->second.value);
}

// Returns the nodes of an option, ascending; none if it is not given.
base::Result<std::vector<model::NodeId>> ScenarioRunner::find_nodes(const Statement& statement,
                                                                    std::string_view name) const {
  std::vector<model::NodeId> nodes;
  const std::string* list = option(statement, name);
  if (list == nullptr) return nodes;
  for (const std::string& each : parts_of(*list)) {
    TRY_ASSIGN(const model::Node* node, find_node(each));
    nodes.push_back(node->id);
  }
  std::ranges::sort(nodes);
  return nodes;
}

// Returns the UUIDs of an option's GPUs, "n1:0,n2:3", ascending; none if it is not given.
base::Result<std::vector<std::string>> ScenarioRunner::find_gpus(const Statement& statement,
                                                                 std::string_view name) const {
  std::vector<std::string> uuids;
  const std::string* list = option(statement, name);
  if (list == nullptr) return uuids;
  for (const std::string& each : parts_of(*list)) {
    const std::size_t colon = each.find(':');
    TRY_ASSIGN(const model::NodeInfo* info, find_info(each.substr(0, colon)));
    const std::string index = colon == std::string::npos ? "" : each.substr(colon + 1);
    TRY_ASSIGN(const std::uint64_t gpu, base::parse_count(index, 0, info->gpus.size() - 1));
    uuids.push_back(info->gpus[gpu].uuid);
  }
  std::ranges::sort(uuids);
  return uuids;
}

std::string run_scenario(const Scenario& scenario) {
  ScenarioRunner runner;
  std::size_t line = 0;
  for (const Statement& statement : scenario.statements) {
    line = statement.line;
    const base::Status done = runner.run(statement);
    if (!done) return fmt::format("{}:{}: {}", scenario.file, line, done.error().message);
  }
  const base::Status at_end = runner.check_end();
  if (!at_end) return fmt::format("{}:{}: {}", scenario.file, line, at_end.error().message);
  return {};
}

}  // namespace gpu_platform::simulation
