#include <utility>

#include <fmt/format.h>

#include "simulation/faults/world.h"

// What operators do to a world's GPUs and nodes, and unmanaged processes on them.

namespace gpu_platform::simulation {

namespace {

controller::Input change(model::GpuSelector which, model::GpuAction action, bool force) {
  model::ChangeGpus command{std::move(which), action, "by an operator", force};
  return controller::CommandInput{{{"root", 0, true}, std::move(command)},
                                  [](const base::Result<model::CommandReply>&) {}};
}

}  // namespace

// Some of what is drawn is refused: names that are taken, GPUs that are.
void World::reserve() {
  const scheduling::Reservations& reservations = controller_->core().state().books->reservations;
  const auto ignore_answer = [](const base::Result<model::CommandReply>&) {};
  const model::Caller root{"root", 0, true};
  if (!reservations.empty() && random_.chance(1, 3)) {
    const std::string& name = reservations.all().begin()->first;
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

void World::operate() {
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
  commands_.push_back(change(std::move(which), action, random_.chance(1, 2)));
}

void World::bring_unmanaged_processes() {
  const model::NodeInfo& node = setup_.nodes[random_.below(setup_.nodes.size())];
  if (node.gpus.empty()) return;
  const std::string& uuid = node.gpus[random_.below(node.gpus.size())].uuid;
  const bool come = random_.chance(1, 2);
  if (come) findings_.count(FaultKind::kUnmanagedProcesses);
  commands_.emplace_back(execution::Observation(
      execution::UnmanagedProcessesObserved{node.name, uuid, come ? "pid 7 of eve" : ""}));
}

// When nothing goes wrong any more, people put back what is out as soon as that is possible and
// release what is held, and unmanaged processes leave.
void World::put_back() {
  if (!commands_.empty()) return;
  controller_->core().state().jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (job.hold == model::Hold::kNone) return;
    commands_.emplace_back(controller::CommandInput{
        {{"root", 0, true}, model::ActOnJob{job.id, model::JobAction::kRelease}},
        [](const base::Result<model::CommandReply>&) {}});
  });
  controller_->core().state().nodes.for_each([&](std::uint64_t, const model::Node& node) {
    if (node.is_heard && node.state != model::NodeState::kUp) {
      commands_.push_back(change({.node = node.name}, model::GpuAction::kBringOnline, false));
    }
    for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
      const model::Gpu& gpu = node.gpus[i];
      const bool is_out =
          gpu.state == model::GpuState::kDraining || gpu.state == model::GpuState::kOffline;
      if (is_out && gpu.is_reported) {
        commands_.push_back(
            change({.node = node.name, .index = i}, model::GpuAction::kBringOnline, false));
      }
      if (!gpu.unmanaged_processes.empty()) {
        commands_.emplace_back(execution::Observation(
            execution::UnmanagedProcessesObserved{node.name, gpu.info.uuid, ""}));
      }
    }
  });
}

}  // namespace gpu_platform::simulation
