#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "model/job_spec.h"
#include "simulation/faults/world.h"

// Faults of GPUs, and what an operator does about them.

namespace gpu_platform::simulation {

using model::Evidence;
using model::EvidenceKind;

namespace {

// What mostly an application does, what is a symptom, and what takes a GPU out.
constexpr std::uint32_t kXids[] = {13, 31, 43, 45, 48, 63, 74, 79, 94, 95, 119, 149, 700};

controller::Input evidence_told(const std::string& node, const std::string& uuid, Evidence piece) {
  return controller::Input(
      execution::Observation(execution::EvidenceObserved{node, uuid, std::move(piece)}));
}

Evidence piece_of(EvidenceKind kind, base::Instant at) {
  Evidence piece;
  piece.kind = kind;
  piece.at = at;
  piece.last = at;
  return piece;
}

}  // namespace

// Probes tell the time of the machine, and what they tell may be late, or of a clock that was set.
base::Instant World::time_of_evidence(base::Prng& random) {
  const base::Instant now = clock_.told();
  if (!random.chance(1, 4)) return now;
  findings_.count(FaultKind::kEvidenceLate);
  const auto apart = static_cast<std::int64_t>(random.below(240)) - 120;
  return now + base::seconds(apart);
}

void World::fault_gpu(const std::string& node, const std::string& uuid, base::Prng& random) {
  if (random.chance(1, 3)) return storm_of_xids(node, uuid, random);
  constexpr EvidenceKind kLevels[] = {EvidenceKind::kHeat, EvidenceKind::kSlowdown,
                                      EvidenceKind::kRemapPending, EvidenceKind::kNotAnswering,
                                      EvidenceKind::kLost};
  Evidence piece = piece_of(kLevels[random.below(std::size(kLevels))], time_of_evidence(random));
  piece.is_over = random.chance(1, 2);
  if (!piece.is_over && piece.kind == EvidenceKind::kHeat) findings_.count(FaultKind::kGpuHot);
  if (!piece.is_over && piece.kind == EvidenceKind::kLost) findings_.count(FaultKind::kGpuLost);
  commands_.push_back(evidence_told(node, uuid, std::move(piece)));
}

void World::storm_of_xids(const std::string& node, const std::string& uuid, base::Prng& random) {
  const std::uint64_t pieces = random.chance(1, 4) ? 1 + random.below(60) : 1;
  if (pieces > 1) findings_.count(FaultKind::kXidStorm);
  const std::uint32_t usual = kXids[random.below(std::size(kXids))];
  for (std::uint64_t i = 0; i < pieces; ++i) {
    Evidence piece = piece_of(EvidenceKind::kXid, time_of_evidence(random));
    piece.code = random.chance(3, 4) ? usual : kXids[random.below(std::size(kXids))];
    piece.count = 1 + static_cast<std::uint32_t>(random.below(1000));
    commands_.push_back(evidence_told(node, uuid, std::move(piece)));
  }
}

// The driver lists the GPUs in another order, as after one has come back.
void World::move_gpus(std::size_t node) {
  model::NodeInfo info = setup_.nodes[node];
  if (has_pods(node) || info.gpus.size() < 2 || !info.topology.links.empty()) return;
  findings_.count(FaultKind::kGpuMoved);
  info.boot_id = boot_id(node);
  std::ranges::rotate(info.gpus, info.gpus.begin() + 1);
  engine_.put_node(info);
}

void World::reset_gpus(const std::string& node, std::uint32_t index, base::Prng& random) {
  findings_.count(FaultKind::kResetOrdered);
  model::ChangeGpus command;
  command.which = {.node = node, .index = index};
  command.action = model::GpuAction::kReset;
  command.force = random.chance(1, 4);
  command.when_empty = random.chance(1, 2);
  commands_.emplace_back(controller::CommandInput{{model::root_caller(), std::move(command)},
                                                  [](const base::Result<model::CommandReply>&) {}});
}

namespace {

constexpr const char* kNoCheck = "the rules of the machine do not allow it";
constexpr const char* kUnfit = "a row of its memory";

base::Duration time_of_check(base::Prng& random) {
  return base::milliseconds(static_cast<std::int64_t>(100 + random.below(20'000)));
}

}  // namespace

// Before the start of an attempt, of one of its GPUs at most.
execution::VirtualCheck World::check_of(const execution::StartOrder& order) {
  // Draws of its own: the other draws of the worlds stay as they are.
  base::Prng random(base::hash64(order.spec->name, seed_ + findings_.step()));
  execution::VirtualCheck check;
  check.duration = time_of_check(random);
  if (order.spec->preflight == model::Preflight::kDeep) check.duration = check.duration * 6;
  if (!is_faulty_) return check;
  if (random.chance(1, 8)) {
    findings_.count(FaultKind::kCheckRefused);
    check.refusal = kNoCheck;
  } else if (random.chance(1, 4)) {
    findings_.count(FaultKind::kGpuUnfit);
    const execution::LaunchNode& part = order.nodes[random.below(order.nodes.size())];
    const std::string& uuid = part.gpus[random.below(part.gpus.size())].info.uuid;
    check.unfit_gpus = {{part.node_name, uuid, kUnfit}};
  }
  return check;
}

execution::VirtualReset World::reset_of(const execution::ResetOrder& order,
                                        const std::string& gpu_uuid) {
  // Draws of its own: the other draws of the worlds stay as they are.
  base::Prng random(base::hash64(gpu_uuid, seed_ + findings_.step()));
  execution::VirtualReset how;
  how.duration = time_of_check(random);
  const bool is_first_check = order.without_reset && !order.is_deep;
  if (is_first_check) findings_.count(FaultKind::kGpuChecked);
  if (is_first_check && is_faulty_ && random.chance(1, 8)) {
    const bool is_refused = random.chance(1, 2);
    findings_.count(is_refused ? FaultKind::kCheckRefused : FaultKind::kCheckFailed);
    how.refused = is_refused ? execution::RefusedPart::kAll : execution::RefusedPart::kNothing;
    how.failure = is_refused ? kNoCheck : kUnfit;
  }
  if (is_first_check || !is_faulty_ || !random.chance(1, 3)) return how;
  findings_.count(FaultKind::kResetFailed);
  how.failure = "it did not come back";
  if (random.chance(1, 2)) {
    how.duration = base::seconds(60);
    how.failure = "there was no answer within 60 seconds";
  }
  return how;
}

// A fault of one client of an MPS server ends all of its clients at that moment. All clients of a
// server have parts of one GPU.
void World::fault_mps_client() {
  // Draws of its own: the other draws of the worlds stay as they are.
  base::Prng random(base::hash64("mps", seed_ + findings_.step()));
  if (!random.chance(1, 2)) return;
  std::vector<std::vector<model::AttemptId>> servers;
  ledger_.state().nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (const model::Gpu& gpu : node.gpus) {
      std::vector<model::AttemptId> clients;
      for (const model::GpuHolder& holder : gpu.holders) {
        if (holder.mode == model::ShareMode::kMps) clients.push_back(holder.attempt);
      }
      if (clients.size() > 1) servers.push_back(std::move(clients));
    }
  });
  if (servers.empty()) return;
  std::vector<model::AttemptId>& clients = servers[random.below(servers.size())];
  std::ranges::rotate(clients,
                      clients.begin() + static_cast<std::ptrdiff_t>(random.below(clients.size())));
  const model::Exit aborted{.code = {}, .signal = std::uint8_t{6}, .lost = model::Lost::kNo};
  const auto culprit = std::ranges::find_if(clients, [&](model::AttemptId client) {
    return engine_.finish(client, aborted, model::EndReason::kNone);
  });
  if (culprit == clients.end()) return;
  const std::string why = fmt::format("a fault of job {} on the same GPU", culprit->job.value);
  const model::Exit failed{.code = std::uint8_t{1}, .signal = {}, .lost = model::Lost::kNo};
  for (const model::AttemptId client : clients) {
    const bool is_ended = engine_.finish(client, failed, model::EndReason::kNone, why);
    if (is_ended) findings_.count(FaultKind::kMpsFault);
  }
}

// What lasts ends; an operator does the rest.
void World::put_back_gpu(const model::Node& node, std::uint32_t index) {
  const model::Gpu& gpu = node.gpus[index];
  if (model::find_taint(gpu.taints, model::TaintSource::kHealth) == nullptr) return;
  for (const EvidenceKind kind :
       {EvidenceKind::kHeat, EvidenceKind::kNotAnswering, EvidenceKind::kLost}) {
    const auto latest = std::find_if(gpu.evidence->rbegin(), gpu.evidence->rend(),
                                     [&](const Evidence& piece) { return piece.kind == kind; });
    if (latest == gpu.evidence->rend() || latest->is_over) continue;
    Evidence over = piece_of(kind, clock_.told());
    over.is_over = true;
    over.source = model::EvidenceSource::kPlatform;  // which is recorded at once
    commands_.push_back(evidence_told(node.name, gpu.info.uuid, std::move(over)));
  }
}

}  // namespace gpu_platform::simulation
