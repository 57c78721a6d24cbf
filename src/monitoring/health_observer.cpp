#include "monitoring/health_observer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "model/job_spec.h"
#include "model/node_lookup.h"
#include "os/clock.h"

namespace gpu_platform::monitoring {

namespace {

using model::Evidence;

Moment host_now() {
  return {os::wall_now(), os::boot_ns()};
}

const model::Gpu* find_gpu_of(const model::Node* node, std::string_view uuid) {
  if (node == nullptr) return nullptr;
  const auto index = model::index_of_gpu(*node, uuid);
  return index ? &node->gpus[*index] : nullptr;
}

// When an operator last brought the GPU or its node online, or when it last passed a reset or a
// check: what is seen after it is news. Unset: not known.
base::Instant renewed_at(const model::Node& node, const model::Gpu* gpu) {
  base::Instant at;
  const auto look_at = [&](const std::vector<Evidence>& pieces) {
    for (const Evidence& piece : pieces) {
      const bool passed = piece.code == static_cast<std::uint32_t>(model::TrialCode::kPassed);
      const bool is_trial =
          piece.kind == model::EvidenceKind::kReset || piece.kind == model::EvidenceKind::kCheck;
      const bool renews = piece.kind == model::EvidenceKind::kCleared || (is_trial && passed);
      if (renews) at = std::max(at, piece.last);
    }
  };
  look_at(*node.evidence);
  if (gpu != nullptr) look_at(*gpu->evidence);
  return at;
}

}  // namespace

HealthObserver::HealthObserver(execution::ObservationSink& sink, SnapshotNow snapshot,
                               HealthLimits limits, Clock clock, OwnerOf owner_of)
    : sink_(sink),
      snapshot_(std::move(snapshot)),
      limits_(limits),
      clock_(clock ? std::move(clock) : Clock(host_now)),
      owner_of_(std::move(owner_of)) {}

HealthObserver::Report HealthObserver::begin_report(const std::string& node) const {
  Report report{node, snapshot_(), nullptr, clock_()};
  report.known = model::node_named(report.snapshot->nodes, *report.snapshot->nodes_by_name, node);
  return report;
}

HealthObserver::WatchedGpu& HealthObserver::gpu_of(const Report& report, const std::string& uuid) {
  const auto found = gpus_.find(uuid);
  if (found != gpus_.end()) return found->second;
  const model::Gpu* const known = find_gpu_of(report.known, uuid);
  WatchedGpu gpu;
  if (known != nullptr) gpu.watch = GpuWatch(*known->evidence);
  return gpus_.emplace(uuid, std::move(gpu)).first->second;
}

// Without a pid, or if it is of no attempt there, none of several attempts on one GPU is named.
HealthObserver::Work HealthObserver::work_on(const Report& report, const std::string& uuid,
                                             std::uint32_t pid) const {
  const model::Gpu* const gpu = find_gpu_of(report.known, uuid);
  if (gpu == nullptr || gpu->holders.empty()) return {};
  auto holder = gpu->holders.begin();
  if (gpu->holders.size() > 1) {
    if (pid == 0 || !owner_of_) return {};
    const auto owner = owner_of_(uuid, pid);
    if (!owner) return {};
    holder = std::ranges::find(gpu->holders, *owner, &model::GpuHolder::attempt);
    if (holder == gpu->holders.end()) return {};
  }
  const model::JobId id = holder->attempt.job;
  const model::Job* const job = report.snapshot->jobs.find(id.value);
  if (job == nullptr || !job->spec) return {.job = id, .user = {}, .program = {}};
  return {id, job->spec->user, model::program_of(*job->spec)};
}

// ---- what is told

void HealthObserver::tell(const Report& report, const std::string& uuid,
                          std::vector<Evidence> pieces) {
  if (pieces.empty()) return;
  forget_storm_before_renewal(report, uuid);
  for (Evidence& piece : pieces) {
    if (!piece.is_over) {
      const Work work = work_on(report, uuid, piece.pid);
      piece.job = work.job;
      piece.user = work.user;
      piece.program = work.program;
    }
    EvidenceStorm::Piece whole{report.node, uuid, std::move(piece)};
    // Levels are few, and their order counts.
    if (model::is_level(whole.evidence.kind)) {
      send(std::move(whole));
    } else if (auto now = storm_.take(std::move(whole), report.now.boot_ns)) {
      send(*std::move(now));
    }
  }
}

void HealthObserver::forget_storm_before_renewal(const Report& report, const std::string& uuid) {
  if (report.known == nullptr || uuid.empty()) return;
  const base::Instant renewed = renewed_at(*report.known, find_gpu_of(report.known, uuid));
  if (std::exchange(gpu_of(report, uuid).renewed_at, renewed) == renewed) return;
  for (EvidenceStorm::Piece& piece : storm_.forget(report.node, uuid)) send(std::move(piece));
}

void HealthObserver::tell_due(Moment now) {
  for (EvidenceStorm::Piece& piece : storm_.take_due(now.boot_ns)) send(std::move(piece));
}

void HealthObserver::send(EvidenceStorm::Piece piece) {
  sink_.observe(execution::EvidenceObserved{std::move(piece.node), std::move(piece.gpu_uuid),
                                            std::move(piece.evidence)});
}

// ---- what comes from the probes

void HealthObserver::take_inventory(const std::string& node, const hardware::Inventory& inventory) {
  // Without its driver a node has no GPUs: that is no fault of theirs.
  if (inventory.gpus.empty()) return;
  const Report report = begin_report(node);
  std::vector<std::string> listed;
  for (const hardware::GpuDescription& described : inventory.gpus) {
    if (!described.uuid) continue;
    WatchedGpu& gpu = gpu_of(report, *described.uuid);
    gpu.build.pcie_generation = described.pcie_generation_max;
    gpu.build.pcie_width = described.pcie_width_max;
    gpu.build.slowdown_c = described.slowdown_c;
    gpu.model = described.model.value_or("");
    gpu.kind =
        fmt::format("{} {}", gpu.model, described.power_limit ? described.power_limit->value() : 0);
    listed.push_back(*described.uuid);
  }
  std::vector<std::string> before = std::exchange(listed_[node], listed);
  if (before.empty() && report.known != nullptr) {
    for (const model::Gpu& gpu : report.known->gpus) {
      if (gpu.is_reported) before.push_back(gpu.info.uuid);
    }
  }
  for (const std::string& uuid : before) {
    if (std::ranges::find(listed, uuid) != listed.end()) continue;
    tell(report, uuid, gpu_of(report, uuid).watch.take_loss(report.now));
  }
}

void HealthObserver::take_readings(const std::string& node, const std::vector<std::string>& uuids,
                                   const node::ProbeReadings& readings) {
  const Report report = begin_report(node);
  learn_links(readings, uuids);
  for (const hardware::GpuReading& reading : readings.gpus) {
    if (reading.index >= uuids.size() || uuids[reading.index].empty()) continue;
    const std::string& uuid = uuids[reading.index];
    WatchedGpu& gpu = gpu_of(report, uuid);
    tell(report, uuid,
         gpu.watch.take({reading, readings.began_ns, readings.is_partial}, gpu.build, limits_,
                        report.now));
  }
  if (!readings.is_partial) compare_peers(report, uuids, readings);
  tell_due(report.now);
}

// GPUs of one model on one node have equally many links up, where they have any.
void HealthObserver::learn_links(const node::ProbeReadings& readings,
                                 const std::vector<std::string>& uuids) {
  std::map<std::string_view, std::uint32_t> most;  // by model
  const auto for_each = [&](auto visit) {
    for (const hardware::GpuReading& reading : readings.gpus) {
      if (reading.index >= uuids.size() || !reading.slow || !reading.slow->nvlinks_active) continue;
      const auto found = gpus_.find(uuids[reading.index]);
      if (found != gpus_.end()) visit(found->second, *reading.slow->nvlinks_active);
    }
  };
  for_each([&](const WatchedGpu& gpu, std::uint32_t links) {
    most[gpu.model] = std::max(most[gpu.model], links);
  });
  for_each([&](WatchedGpu& gpu, std::uint32_t) {
    gpu.build.nvlinks = std::max(gpu.build.nvlinks.value_or(0), most[gpu.model]);
  });
}

void HealthObserver::compare_peers(const Report& report, const std::vector<std::string>& uuids,
                                   const node::ProbeReadings& readings) {
  std::vector<std::string> read;
  for (const hardware::GpuReading& reading : readings.gpus) {
    if (reading.index >= uuids.size() || uuids[reading.index].empty()) continue;
    const std::string& uuid = uuids[reading.index];
    const Work work = work_on(report, uuid);
    const bool is_set =
        reading.throttle_reasons && (*reading.throttle_reasons & model::kThrottleClockSetting) != 0;
    const bool is_busy = reading.utilization_percent.value_or(0) >= PeerWatch::kBusyPercent;
    std::optional<PeerWatch::Sample> sample;
    if (work.job.valid() && is_busy && reading.clock_sm_mhz && !is_set) {
      sample = {work.job, gpu_of(report, uuid).kind, *reading.clock_sm_mhz};
    }
    peers_.take(uuid, std::move(sample), report.now.boot_ns);
    read.push_back(uuid);
  }
  for (const PeerWatch::Change& change : peers_.take_changes(read, report.now.boot_ns)) {
    tell(report, change.uuid,
         gpu_of(report, change.uuid).watch.take_speed(change.is_slow, change.percent, report.now));
  }
}

void HealthObserver::take_events(const std::string& node, const node::ProbeEvents& events) {
  if (events.events.empty()) return;
  const Report report = begin_report(node);
  for (const hardware::GpuEvent& event : events.events) {
    if (event.uuid.empty()) {
      // The driver names no GPU: it is the node's.
      tell(report, {}, GpuWatch().take(event, report.now));
    } else {
      tell(report, event.uuid, gpu_of(report, event.uuid).watch.take(event, report.now));
    }
  }
  tell_due(report.now);
}

// What lasts is told again now and then, for an operator may have cleared it.
bool HealthObserver::is_new_switch_fault(const Report& report, const hardware::KernelLine& line) {
  constexpr base::Duration kAgain = base::minutes(1);
  const std::int64_t now_ns = report.now.boot_ns;
  const auto [told, is_first] =
      switch_faults_.emplace(fmt::format("{} {} {}", report.node, line.place, line.code), now_ns);
  if (is_first) return true;
  if (now_ns - told->second < kAgain.value()) return false;
  told->second = now_ns;
  return true;
}

// A fatal error of an NVSwitch lasts until the machine is started again. What is not fatal the
// driver has mended.
void HealthObserver::take_kernel_line(const std::string& node, const std::string& uuid,
                                      const hardware::KernelLine& line) {
  const Report report = begin_report(node);
  if (line.kind != hardware::KernelLineKind::kSwitchError) {
    tell(report, uuid,
         uuid.empty() ? GpuWatch().take(line, report.now)
                      : gpu_of(report, uuid).watch.take(line, report.now));
  } else if (line.is_fatal && is_new_switch_fault(report, line)) {
    Evidence piece;
    piece.kind = model::EvidenceKind::kNodeCondition;
    piece.source = model::EvidenceSource::kKernelLog;
    piece.at = piece.last = report.now.at;
    piece.count = line.count;
    piece.text = fmt::format("SXid {}: NVSwitch {}: {}", line.code, line.place, line.text);
    tell(report, {}, {std::move(piece)});
  }
  tell_due(report.now);
}

}  // namespace gpu_platform::monitoring
