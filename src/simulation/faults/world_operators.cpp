#include <utility>

#include <fmt/format.h>

#include "simulation/faults/world.h"

// These are the actions of operators on a world's GPUs and nodes, and unmanaged processes on them.

namespace gpu_platform::simulation {

namespace {

controller::Input change(model::GpuSelector which, model::GpuAction action, bool force,
                         base::Instant until = {}) {
  model::ChangeGpus command{std::move(which), action, "by an operator", force, until};
  return controller::CommandInput{{model::root_caller(), std::move(command)},
                                  [](const base::Result<model::CommandReply>&) {}};
}

}  // namespace

// Some of what is drawn is refused: names that are taken, GPUs that are.
void World::reserve() {
  const scheduling::Reservations& reservations = controller_->core().state().books->reservations;
  const auto ignore_answer = [](const base::Result<model::CommandReply>&) {};
  const model::Caller root = model::root_caller();
  // Draws of its own: the other draws of the worlds stay as they are.
  base::Prng more(static_cast<std::uint64_t>(controller_->core().state().at.unix_ns()));
  if (!reservations.empty() && random_.chance(1, 3)) {
    const std::string& name = reservations.all().begin()->first;
    if (more.chance(1, 4)) return change_reservation(reservations.all().begin()->second, more);
    commands_.emplace_back(
        controller::CommandInput{{root, model::CancelReservation{name}}, ignore_answer});
    return;
  }
  const auto seconds = [&](std::uint64_t most) {
    return base::seconds(static_cast<std::int64_t>(1 + random_.below(most)));
  };
  model::MakeReservation made;
  made.name = fmt::format("w{}", random_.below(6));
  const base::Instant at = controller_->core().state().at;
  if (at.is_set() && random_.chance(3, 4)) made.begin = at + seconds(900);
  made.duration = seconds(1800);
  made.maintenance = random_.chance(1, 4);
  if (!made.maintenance) made.users = {random_.chance(1, 2) ? "ann" : "bob"};
  made.ignore_running = random_.chance(1, 2);
  made.force = random_.chance(1, 2);
  if (more.chance(1, 4)) {
    made.repeat = more.chance(3, 4) ? model::Repeat::kHourly : model::Repeat::kDaily;
    made.count = static_cast<std::uint32_t>(1 + more.below(3));
  }
  if (random_.chance(1, 3)) {
    made.gpus = static_cast<std::uint32_t>(1 + random_.below(6));
  } else {
    for (std::uint64_t left = 1 + random_.below(2); left > 0; --left) {
      made.nodes.push_back(setup_.nodes[random_.below(setup_.nodes.size())].name);
    }
    if (random_.chance(1, 2)) {
      made.gpus_per_node = static_cast<std::uint32_t>(1 + random_.below(3));
    }
  }
  commands_.emplace_back(controller::CommandInput{{root, std::move(made)}, ignore_answer});
}

void World::change_reservation(const model::Reservation& reservation, base::Prng& random) {
  const auto some = [&] { return base::seconds(static_cast<std::int64_t>(1 + random.below(900))); };
  model::ChangeReservation change;
  change.name = reservation.name;
  change.ignore_running = random.chance(1, 2);
  change.force = random.chance(1, 2);
  switch (random.below(5)) {
    case 0:
      change.skip = true;
      break;
    case 1:
      change.begin = controller_->core().state().at + some();
      break;
    case 2:
      change.duration = some();
      break;
    case 3:
      change.gpus = static_cast<std::uint32_t>(1 + random.below(3));
      break;
    default:
      change.repeat = random.chance(1, 2) ? model::Repeat::kHourly : model::Repeat::kNever;
  }
  commands_.emplace_back(controller::CommandInput{{model::root_caller(), std::move(change)},
                                                  [](const base::Result<model::CommandReply>&) {}});
}

// Some of what is drawn is refused: names that are taken, roles and ends beyond the caller's.
void World::use_tokens() {
  const controller::State& state = controller_->core().state();
  // Draws of its own: the other draws of the worlds stay as they are.
  base::Prng random(static_cast<std::uint64_t>(state.at.unix_ns()) + 1);
  if (!random.chance(1, 3)) return;
  std::vector<model::TokenId> known;
  state.tokens.for_each(
      [&](std::uint64_t id, const model::Token&) { known.emplace_back(model::TokenId(id)); });
  model::Caller caller{.user = "ann", .uid = 1001};
  const bool has_token = !known.empty() && random.chance(2, 3);
  const model::TokenId one = has_token ? known[random.below(known.size())] : model::TokenId();
  const auto tell = [&](auto command) {
    commands_.emplace_back(controller::CommandInput{
        {caller, std::move(command)}, [](const base::Result<model::CommandReply>&) {}});
  };
  if (has_token && random.chance(1, 3)) {
    if (random.chance(1, 3)) caller.credential = known[random.below(known.size())].value;
    return tell(model::RevokeToken{one});
  }
  if (has_token && random.chance(1, 3)) return tell(model::RecordTokenUse{one, state.at});
  model::MakeToken made;
  made.name = fmt::format("t{}", random.below(8));
  made.user = caller.user;
  made.uid = made.gid = caller.uid;
  made.hash = std::string(model::kTokenHashBytes, 'h');
  made.expires_at = state.at + base::seconds(static_cast<std::int64_t>(1 + random.below(1800)));
  if (random.chance(1, 2)) made.request_id = fmt::format("k{}", random.below(4));
  if (random.chance(1, 2)) made.role = model::Role::kViewer;
  caller.credential = random.chance(1, 2) ? one.value : 0;
  if (random.chance(1, 4)) {
    made.proven = model::ProvenNames{{"cn:ann"}, {}, {}, "ann"};
    made.proven_until = state.at + base::seconds(static_cast<std::int64_t>(random.below(1800)));
  }
  tell(std::move(made));
}

namespace {

// Some of them are in the configurations of worlds.
constexpr std::string_view kTeamNames[] = {"vision", "speech", "w1", "w2"};

model::SetTeam without_limits(std::string_view name) {
  model::SetTeam change;
  change.name = name;
  change.presence = model::SetTeam::Presence::kPresent;
  for (const model::QuotaField& row : model::kQuotaFields) change.quota[row.key] = std::nullopt;
  return change;
}

}  // namespace

// Some of what is drawn is refused: what the configuration says, limits that contradict each other,
// teams with jobs, and what a coordinator may not do.
void World::manage_teams() {
  // Draws of its own: the other draws of the worlds stay as they are.
  base::Prng random(static_cast<std::uint64_t>(controller_->core().state().at.unix_ns()) + 2);
  if (!random.chance(1, 3)) return;
  model::Caller caller = model::root_caller();
  const auto tell = [&](auto command) {
    commands_.emplace_back(controller::CommandInput{
        {caller, std::move(command)}, [](const base::Result<model::CommandReply>&) {}});
  };
  const std::string name(kTeamNames[random.below(std::size(kTeamNames))]);
  // Mostly one that is there; its jobs may keep it.
  const auto& made = controller_->core().state().teams->run_time;
  const bool is_there = !made.empty() && random.chance(2, 3);
  if (random.chance(1, 6)) {
    caller = {.user = "ann", .uid = 1001};
    return tell(
        model::AnswerInvitation{is_there ? made.begin()->first : name, random.chance(2, 3)});
  }
  if (random.chance(1, 4)) return tell(model::RemoveTeam{is_there ? made.begin()->first : name});
  model::SetTeam change;
  change.name = name;
  if (random.chance(1, 3)) {
    caller = {.user = "cyd", .uid = 1003, .reach = model::Reach::kTeams};
    caller.teams = std::make_shared<const model::Teams>(model::Teams{{}, {name}});
  } else if (random.chance(1, 3)) {
    change.parent = std::string(kTeamNames[random.below(std::size(kTeamNames))]);
  }
  if (random.chance(1, 2)) change.add_members = {{random.chance(1, 2) ? "ann" : "bob", 1}};
  for (const model::QuotaField& row : model::kQuotaFields) {
    if (!random.chance(1, 4)) continue;
    const auto value = static_cast<std::uint32_t>(random.below(9));
    change.quota[row.key] = random.chance(1, 4) ? std::nullopt : std::optional(value);
  }
  tell(std::move(change));
}

// Limits may have been lowered below what a waiting job asks for.
void World::lift_limits_of_teams() {
  for (const std::string_view name : kTeamNames) {
    commands_.emplace_back(
        controller::CommandInput{{model::root_caller(), without_limits(name)},
                                 [](const base::Result<model::CommandReply>&) {}});
  }
}

// When a drain ends by itself; mostly it does not. An end that has passed until the core hears of
// it is refused.
base::Instant World::drawn_end(model::GpuAction action) const {
  const base::Instant now = controller_->core().state().at;
  // Draws of its own: the other draws of the worlds stay as they are.
  base::Prng random(static_cast<std::uint64_t>(now.unix_ns()) + 3);
  if (action == model::GpuAction::kBringOnline || !random.chance(1, 3)) return {};
  return now + base::seconds(static_cast<std::int64_t>(1 + random.below(900)));
}

void World::operate() {
  use_tokens();
  manage_teams();
  if (random_.chance(1, 2)) return reserve();
  const model::NodeInfo& node = setup_.nodes[random_.below(setup_.nodes.size())];
  model::GpuSelector which{.node = node.name};
  if (!node.gpus.empty() && random_.chance(3, 4)) {
    which.index = static_cast<std::uint32_t>(random_.below(node.gpus.size()));
  }
  constexpr model::GpuAction kActions[] = {model::GpuAction::kDrain, model::GpuAction::kTakeOffline,
                                           model::GpuAction::kBringOnline};
  const model::GpuAction action = kActions[random_.below(std::size(kActions))];
  if (action == model::GpuAction::kDrain) findings_.count(FaultKind::kDrained);
  if (action == model::GpuAction::kTakeOffline) findings_.count(FaultKind::kTakenOffline);
  const bool force = random_.chance(1, 2);
  commands_.push_back(change(std::move(which), action, force, drawn_end(action)));
}

void World::bring_unmanaged_processes() {
  const std::size_t at = random_.below(setup_.nodes.size());
  const model::NodeInfo& node = setup_.nodes[at];
  if (node.gpus.empty()) return;
  const std::size_t index = random_.below(node.gpus.size());
  const std::string& uuid = node.gpus[index].uuid;
  const bool come = random_.chance(1, 2);
  // Draws of its own: the other draws of the worlds stay as they are.
  base::Prng more(static_cast<std::uint64_t>(controller_->core().state().at.unix_ns()));
  if (more.chance(1, 2)) return change_health(node.name, uuid, more);
  if (more.chance(1, 2)) return fault_gpu(node.name, uuid, more);
  if (more.chance(1, 4)) return move_gpus(at);
  if (more.chance(1, 3)) return reset_gpus(node.name, static_cast<std::uint32_t>(index), more);
  if (come) findings_.count(FaultKind::kUnmanagedProcesses);
  execution::UnmanagedProcessesObserved seen{node.name, uuid, come ? "pid 7 of eve" : ""};
  if (come && controller_->core().state().policy->load_rules.is_on && more.chance(7, 8)) {
    const auto percent = static_cast<std::uint32_t>(more.below(21)) * 5;
    const auto eighths = static_cast<std::int64_t>(more.below(9));
    seen.load = model::GpuLoad{percent, base::Bytes(node.gpus[index].memory.value() / 8) * eighths};
  }
  commands_.emplace_back(execution::Observation(std::move(seen)));
}

void World::change_health(const std::string& node, const std::string& uuid, base::Prng& random) {
  execution::EvidenceObserved seen{node, uuid, {}};
  seen.evidence.kind = model::EvidenceKind::kNotAnswering;
  seen.evidence.at = seen.evidence.last = clock_.told();
  if (random.chance(1, 3)) {
    findings_.count(FaultKind::kGpuSilent);
  } else if (random.chance(1, 2)) {
    findings_.count(FaultKind::kGpuFaulty);
    seen.evidence.kind = model::EvidenceKind::kXid;
    seen.evidence.code = 48;
  } else {
    seen.evidence.is_over = true;
  }
  commands_.emplace_back(execution::Observation(std::move(seen)));
}

// Others come and go on a node of a cluster, which lets it do more or less.
void World::change_cluster() {
  const std::size_t at = random_.below(setup_.nodes.size());
  if (pods_ && random_.chance(1, 2)) return cluster_->evict_one();
  if (has_pods(at)) return cluster_->trouble(setup_.nodes[at].name);
  if (random_.chance(1, 3)) return evict();
  const model::NodeInfo& node = setup_.nodes[at];
  if (model::traits_of(node.engine).is_on_this_machine) return;
  if (random_.chance(1, 3)) {
    findings_.count(FaultKind::kServiceChanged);
    execution::TaintObserved seen{.node_name = node.name, .gpu_uuid = {}};
    seen.effect =
        model::effect_of(static_cast<model::NodeService>(random_.below(model::kNodeServices)));
    seen.text = "its cluster says so";
    commands_.emplace_back(execution::Observation(std::move(seen)));
  } else if (!node.gpus.empty() && random_.chance(1, 2)) {
    const bool is_lent = random_.chance(1, 2);
    if (is_lent) findings_.count(FaultKind::kGpuUnavailable);
    execution::TaintObserved seen{.node_name = node.name,
                                  .gpu_uuid = node.gpus[random_.below(node.gpus.size())].uuid,
                                  .text = "a pod of others has it"};
    if (is_lent) seen.effect = model::TaintEffect::kAvoided;
    commands_.emplace_back(execution::Observation(std::move(seen)));
  } else {
    findings_.count(FaultKind::kOthersCame);
    model::NodeInfo info = node;
    info.boot_id = boot_id(at);
    info.others_cpus = static_cast<std::uint32_t>(random_.below(info.cpus + 1));
    info.others_memory = base::Bytes(static_cast<std::int64_t>(
        random_.below(static_cast<std::uint64_t>(info.memory.value()) + 1)));
    engine_.put_node(info);
  }
}

// The cluster takes the place of a job away.
void World::evict() {
  const std::vector<model::AttemptId> live = engine_.live_attempts();
  if (live.empty()) return;
  const model::AttemptId id = live[random_.below(live.size())];
  const model::Attempt* attempt = controller::find_attempt(ledger_.state(), id);
  if (attempt == nullptr) return;
  const model::Node& node = *ledger_.state().nodes.find(attempt->first_node().value);
  if (model::traits_of(node.engine).is_on_this_machine) return;
  const model::Exit exit{.code = {}, .signal = std::uint8_t{15}, .lost = model::Lost::kNo};
  if (engine_.finish(id, exit, model::EndReason::kPreempted)) findings_.count(FaultKind::kEvicted);
}

// When nothing goes wrong any more, people put back what is out as soon as that is possible and
// release what is held, unmanaged processes leave, GPUs answer, and clusters give back what they
// took.
void World::put_back() {
  if (!commands_.empty()) return;
  controller_->core().state().jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (job.hold == model::Hold::kNone) return;
    commands_.emplace_back(controller::CommandInput{
        {model::root_caller(), model::ActOnJob{job.id, model::JobAction::kRelease}},
        [](const base::Result<model::CommandReply>&) {}});
  });
  controller_->core().state().nodes.for_each([&](std::uint64_t, const model::Node& node) {
    const bool is_out_by_people =
        model::find_taint(node.taints, model::TaintSource::kOperator) != nullptr ||
        model::find_taint(node.taints, model::TaintSource::kHooks) != nullptr;
    if (model::is_heard(node) && is_out_by_people) {
      commands_.push_back(change({.node = node.name}, model::GpuAction::kBringOnline, false));
    }
    // What a cluster that runs pods takes, it gives back itself.
    const bool says_so_itself = pods_ && !model::traits_of(node.engine).is_on_this_machine;
    if (model::find_taint(node.taints, model::TaintSource::kCluster) && !says_so_itself) {
      commands_.emplace_back(
          execution::Observation(execution::TaintObserved{.node_name = node.name, .gpu_uuid = {}}));
    }
    for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
      const model::Gpu& gpu = node.gpus[i];
      const bool is_out = gpu.state == model::GpuState::kDraining ||
                          gpu.state == model::GpuState::kOffline ||
                          gpu.state == model::GpuState::kDegraded;
      put_back_gpu(node, i);
      const bool resets = model::find_taint(gpu.taints, model::TaintSource::kReset) != nullptr;
      if (is_out && gpu.is_reported && !resets) {
        commands_.push_back(
            change({.node = node.name, .index = i}, model::GpuAction::kBringOnline, false));
      }
      const bool is_taken = model::find_taint(gpu.taints, model::TaintSource::kCluster) != nullptr;
      if (is_taken && !says_so_itself) {
        commands_.emplace_back(execution::Observation(
            execution::TaintObserved{.node_name = node.name, .gpu_uuid = gpu.info.uuid}));
      }
      if (!gpu.unmanaged_processes.empty()) {
        commands_.emplace_back(execution::Observation(
            execution::UnmanagedProcessesObserved{node.name, gpu.info.uuid, ""}));
      }
    }
  });
}

}  // namespace gpu_platform::simulation
