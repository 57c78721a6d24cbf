#include "monitoring/gpu_monitor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/node_lookup.h"
#include "model/policy.h"
#include "os/clock.h"

namespace gpu_platform::monitoring {

namespace {

constexpr std::size_t kXidsKept = 16;
constexpr std::size_t kNamedProcesses = 4;
constexpr std::chrono::hours kForgottenAfter{1};
constexpr std::chrono::minutes kForgetsEach{1};

std::string problem_of(const hardware::GpuReading& reading) {
  if (reading.condition == hardware::GpuCondition::kAnswering) return {};
  return reading.problem.empty() ? "the GPU does not answer" : reading.problem;
}

model::GpuReading to_model(const hardware::GpuReading& in) {
  model::GpuReading out;
  static_cast<model::GpuMetrics&>(out) = in;
  out.at = os::wall_now();
  out.problem = problem_of(in);
  return out;
}

const model::Gpu* find_gpu(const model::Node* node, std::string_view uuid) {
  if (node == nullptr) return nullptr;
  const auto index = model::index_of_gpu(*node, uuid);
  return index ? &node->gpus[*index] : nullptr;
}

std::optional<model::AttemptId> attempt_with_pid(const controller::Snapshot& snapshot,
                                                 const model::Gpu* gpu, std::uint64_t pid) {
  if (gpu == nullptr) return std::nullopt;
  for (const model::GpuHolder& holder : gpu->holders) {
    const model::Job* job = snapshot.jobs.find(holder.attempt.job.value);
    if (job == nullptr || holder.attempt.attempt > job->attempts.size()) continue;
    if (job->attempts[holder.attempt.attempt - 1].pid == pid) return holder.attempt;
  }
  return std::nullopt;
}

std::string describe(const std::vector<const model::GpuProcess*>& unmanaged_processes) {
  std::string text;
  const std::size_t named = std::min(unmanaged_processes.size(), kNamedProcesses);
  for (std::size_t i = 0; i < named; ++i) {
    const model::GpuProcess& process = *unmanaged_processes[i];
    if (i > 0) text += ", ";
    // All users may read this text, so it does not name the command of the process.
    text += process.user.empty() ? fmt::format("pid {} (not seen from here)", process.pid)
                                 : fmt::format("pid {} of {}", process.pid, process.user);
  }
  if (unmanaged_processes.size() > named)
    text += fmt::format(" and {} more", unmanaged_processes.size() - named);
  return text;
}

// None: the driver does not say it of each of them, or says what cannot be.
std::optional<base::Bytes> memory_of(const std::vector<const model::GpuProcess*>& processes,
                                     base::Bytes total) {
  base::Bytes sum;
  for (const model::GpuProcess* const process : processes) {
    if (!process->memory || *process->memory > total - sum) return std::nullopt;
    sum += *process->memory;
  }
  return sum;
}

bool places_by_load(const model::Policy* policy) {
  return policy != nullptr && policy->load_rules.is_on;
}

// The core then keeps nothing of them, and is told when that changes.
bool ignores_processes(const model::Policy* policy) {
  return policy != nullptr && !policy->load_rules.is_on &&
         policy->unmanaged_processes == model::UnmanagedProcessPolicy::kIgnore;
}

}  // namespace

void GpuMonitor::take_inventory(const hardware::Inventory& inventory) {
  const std::lock_guard lock(mutex_);
  for (const hardware::GpuDescription& gpu : inventory.gpus) {
    if (!gpu.uuid) continue;
    GpuLimits& limits = limits_[*gpu.uuid];
    if (gpu.power_limit) limits.power = gpu.power_limit;
    if (gpu.slowdown_c) limits.slowdown_c = gpu.slowdown_c;
  }
}

void GpuMonitor::take_power_limit(const std::string& uuid, base::Milliwatts limit) {
  const std::lock_guard lock(mutex_);
  limits_[uuid].power = limit;
}

SeenProcesses GpuMonitor::take_readings(const std::string& node,
                                        const std::vector<std::string>& uuids,
                                        const node::ProbeReadings& readings) {
  SeenProcesses all_seen;
  const auto snapshot = snapshot_();
  const model::Node* const known =
      model::node_named(snapshot->nodes, *snapshot->nodes_by_name, node);
  for (const hardware::GpuReading& reading : readings.gpus) {
    if (reading.index >= uuids.size() || uuids[reading.index].empty()) continue;
    const std::string& uuid = uuids[reading.index];
    model::GpuReading out = to_model(reading);
    if (reading.processes) {
      std::vector<SeenProcess>& seen = all_seen[uuid];
      const ReadGpu gpu{uuid, find_gpu(known, uuid), reading};
      out.processes = processes_of(gpu, *snapshot, seen);
      tell_unmanaged_processes(node, gpu, snapshot->policy.get(), out.processes);
    }
    const std::lock_guard lock(mutex_);
    if (const auto limits = limits_.find(uuid); limits != limits_.end()) {
      out.power_limit = limits->second.power;
      out.slowdown_c = limits->second.slowdown_c;
    }
    GpuSeen& seen = gpus_[uuid];
    out.xids = seen.xids;
    out.xid_counts = seen.xid_counts;
    seen.heard_at = std::chrono::steady_clock::now();
    seen.reading = std::make_shared<const model::GpuReading>(std::move(out));
  }
  if (readings.is_partial) return all_seen;
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    read_at_[node] = now;
    if (readings.host) hosts_[node] = std::make_shared<const model::HostMetrics>(*readings.host);
  }
  if (now - forgot_at_ >= kForgetsEach) {
    forgot_at_ = now;
    forget_gpus_before(now - kForgottenAfter);
  }
  return all_seen;
}

// What was told of unmanaged processes stays until its end is told, too.
void GpuMonitor::forget_gpus_before(std::chrono::steady_clock::time_point limit) {
  const std::lock_guard lock(mutex_);
  for (auto gpu = gpus_.begin(); gpu != gpus_.end();) {
    if (gpu->second.heard_at >= limit) {
      ++gpu;
      continue;
    }
    limits_.erase(gpu->first);
    owners_seen_.erase(gpu->first);
    const auto unmanaged = unmanaged_processes_.find(gpu->first);
    if (unmanaged != unmanaged_processes_.end() && unmanaged->second.told.empty()) {
      unmanaged_processes_.erase(unmanaged);
    }
    gpu = gpus_.erase(gpu);
  }
  std::erase_if(read_at_, [&](const auto& node) {
    if (node.second >= limit) return false;
    hosts_.erase(node.first);
    return true;
  });
}

void GpuMonitor::take_events(const node::ProbeEvents& events) {
  const base::Instant now = os::wall_now();
  std::set<std::string_view> changed;
  const std::lock_guard lock(mutex_);
  for (const hardware::GpuEvent& event : events.events) {
    if (event.kind != hardware::GpuEventKind::kXid || event.uuid.empty()) continue;
    std::vector<model::SeenXid>& xids = gpus_[event.uuid].xids;
    xids.insert(xids.begin(), {event.value, now});
    if (xids.size() > kXidsKept) xids.resize(kXidsKept);
    ++gpus_[event.uuid].xid_counts[event.value];
    gpus_[event.uuid].heard_at = std::chrono::steady_clock::now();
    changed.insert(event.uuid);
  }
  for (const std::string_view uuid : changed) {
    GpuSeen& seen = gpus_.find(uuid)->second;
    auto reading = seen.reading ? *seen.reading : model::GpuReading{};
    reading.xids = seen.xids;
    reading.xid_counts = seen.xid_counts;
    seen.reading = std::make_shared<const model::GpuReading>(std::move(reading));
  }
}

std::vector<model::GpuProcess> GpuMonitor::processes_of(const ReadGpu& gpu,
                                                        const controller::Snapshot& snapshot,
                                                        std::vector<SeenProcess>& seen) {
  std::vector<model::GpuProcess> processes;
  for (const hardware::GpuProcess& in : *gpu.reading.processes) {
    const ProcessOwner owner = owners_.find(
        in.pid, [&](std::uint64_t pid) { return attempt_with_pid(snapshot, gpu.known, pid); });
    model::GpuProcess out{in.pid, owner.user, owner.command, in.memory, {}, false};
    if (owner.attempt) out.job = owner.attempt->job;
    if (owner.exists) out.uid = owner.uid;
    seen.push_back({in.pid, !owner.exists, owner.attempt, owner.is_server});
    processes.push_back(std::move(out));
  }
  remember_owners(gpu.uuid, seen);
  const auto is_managed = [&](const SeenProcess& process) {
    if (process.is_server) return true;
    if (gpu.known == nullptr) return false;
    const auto& holders = gpu.known->holders;
    // An ended process without a known owner is its holder's: the release waits for it.
    if (!process.attempt) return process.has_ended && !holders.empty();
    return std::ranges::find(holders, *process.attempt, &model::GpuHolder::attempt) !=
           holders.end();
  };
  for (std::size_t i = 0; i < seen.size(); ++i) processes[i].is_unmanaged = !is_managed(seen[i]);
  return processes;
}

std::optional<model::AttemptId> GpuMonitor::owner_of(const std::string& uuid, std::uint32_t pid) {
  if (const auto seen = owners_seen_.find(uuid); seen != owners_seen_.end()) {
    const auto owner = seen->second.find(pid);
    if (owner != seen->second.end()) return owner->second;
  }
  // By its cgroup alone: without one, a first process cannot be told from one that has its pid now.
  return owners_.find(pid, {}).attempt;
}

// An ended process has no cgroup and no ancestors that could tell its owner: the readings in which
// it lived do.
void GpuMonitor::remember_owners(const std::string& uuid, std::vector<SeenProcess>& seen) {
  std::map<std::uint32_t, model::AttemptId>& known = owners_seen_[uuid];
  std::map<std::uint32_t, model::AttemptId> now;
  for (SeenProcess& process : seen) {
    const auto before = known.find(process.pid);
    if (process.has_ended && before != known.end()) process.attempt = before->second;
    if (process.attempt) now.emplace(process.pid, *process.attempt);
  }
  known = std::move(now);
}

// Told only when they were there in two readings in a row: a process that is just starting or
// ending may be on the GPU and not in the published state.
void GpuMonitor::tell_unmanaged_processes(const std::string& node, const ReadGpu& gpu,
                                          const model::Policy* policy,
                                          const std::vector<model::GpuProcess>& processes) {
  if (gpu.known == nullptr) return;
  const auto [entry, is_first] = unmanaged_processes_.try_emplace(gpu.uuid);
  UnmanagedProcesses& known = entry->second;
  // An earlier daemon told it; one reading cannot show whether it lasts.
  if (is_first) known.told = gpu.known->unmanaged_processes;
  std::vector<const model::GpuProcess*> lasting;
  std::set<std::uint32_t> seen;
  for (const model::GpuProcess& process : processes) {
    if (!process.is_unmanaged) continue;
    seen.insert(process.pid);
    if (known.seen.contains(process.pid)) lasting.push_back(&process);
  }
  known.seen = std::move(seen);
  std::string text = ignores_processes(policy) ? std::string() : describe(lasting);
  // What a job of ours does on the GPU is not the others' load.
  if (!gpu.known->holders.empty()) {
    known.load.take_held(gpu.reading,
                         memory_of(lasting, gpu.reading.memory_total.value_or(base::Bytes())));
  } else {
    known.load.take(gpu.reading, std::chrono::steady_clock::now());
  }
  const bool has_load = places_by_load(policy) && !text.empty();
  const bool has_new_load = known.load.has_moved(has_load);
  if (is_first || (text == known.told && !has_new_load)) return;
  known.told = text;
  sink_.observe(execution::UnmanagedProcessesObserved{
      node, gpu.uuid, std::move(text), has_load ? known.load.tell() : known.load.forget()});
}

std::shared_ptr<const model::GpuReading> GpuMonitor::latest(std::string_view uuid) const {
  const std::lock_guard lock(mutex_);
  const auto found = gpus_.find(uuid);
  return found == gpus_.end() ? nullptr : found->second.reading;
}

std::shared_ptr<const model::HostMetrics> GpuMonitor::latest_host(std::string_view node) const {
  const std::lock_guard lock(mutex_);
  const auto found = hosts_.find(node);
  return found == hosts_.end() ? nullptr : found->second;
}

std::vector<std::string> GpuMonitor::nodes_older_than(std::chrono::milliseconds age) const {
  const auto limit = std::chrono::steady_clock::now() - age;
  const std::lock_guard lock(mutex_);
  std::vector<std::string> nodes;
  for (const auto& [node, at] : read_at_) {
    if (at < limit) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace gpu_platform::monitoring
