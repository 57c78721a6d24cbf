#include "monitoring/job_watchdog.h"

#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/parse.h"
#include "model/job_spec.h"
#include "model/node_lookup.h"
#include "os/clock.h"

namespace gpu_platform::monitoring {

namespace {

// Null: it does not run, or has no watchdog.
const model::Job* find_watched(const controller::Snapshot& snapshot, model::AttemptId id) {
  const model::Job* const job = snapshot.jobs.find(id.job.value);
  if (job == nullptr || job->spec->hang_timeout == base::Duration()) return nullptr;
  const bool is_latest = job->attempts.size() == id.attempt;
  const bool runs = is_latest && job->attempts.back().state == model::AttemptState::kRunning;
  return runs ? job : nullptr;
}

// Calls visit(node, uuid) for each GPU of the job's latest attempt.
template <class Visit>
void for_each_gpu(const controller::Snapshot& snapshot, const model::Job& job, const Visit& visit) {
  for (const model::NodeAllocation& part : job.attempts.back().allocation.nodes) {
    const model::Node* const node = snapshot.nodes.find(part.node.value);
    if (node == nullptr) continue;
    for (const model::GpuGrant& grant : part.grants) {
      visit(*node, node->gpus.at(grant.gpu_index).info.uuid);
    }
  }
}

}  // namespace

void JobWatchdog::on_report(node::ProbeReport report) {
  const auto* const readings = std::get_if<node::ProbeReadings>(&report.content);
  const bool is_whole = readings != nullptr && !readings->is_partial;
  const std::string node_name = report.node_name;
  next_.on_report(std::move(report));
  if (is_whole) take_readings(node_name);
}

void JobWatchdog::take_readings(const std::string& node_name) {
  const auto snapshot = snapshot_();
  const model::Node* const node =
      model::node_named(snapshot->nodes, *snapshot->nodes_by_name, node_name);
  if (node == nullptr) return;
  const base::Instant now(os::boot_ns());
  std::vector<HangWatch::Watched> watched;
  for (const model::Gpu& gpu : node->gpus) {
    for (const model::GpuHolder& holder : gpu.holders) {
      const model::Job* const job = find_watched(*snapshot, holder.attempt);
      if (job == nullptr) continue;
      const auto reading = monitor_.latest(gpu.info.uuid);
      const bool is_known = reading != nullptr && reading->problem.empty();
      watch_.take_reading(gpu.info.uuid, is_known ? reading->utilization_percent : std::nullopt,
                          now);
      if (std::ranges::find(watched, holder.attempt, &HangWatch::Watched::attempt) !=
          watched.end()) {
        continue;
      }
      watched.push_back(
          {holder.attempt, hang_timeout_on_clock(job->spec->hang_timeout, holder), {}});
      for_each_gpu(*snapshot, *job, [&](const model::Node&, const std::string& uuid) {
        watched.back().gpus.push_back(uuid);
      });
    }
  }
  if (watched.empty()) return;
  for (const model::AttemptId hung : watch_.look(watched, output_of_, now)) tell(*snapshot, hung);
}

void JobWatchdog::tell(const controller::Snapshot& snapshot, model::AttemptId attempt) {
  const model::Job& job = *snapshot.jobs.find(attempt.job.value);
  const base::Instant now = os::wall_now();
  model::Evidence evidence{.kind = model::EvidenceKind::kJobHung,
                           .source = model::EvidenceSource::kJob,
                           .at = now,
                           .last = now};
  evidence.job = job.id;
  evidence.user = job.spec->user;
  evidence.program = model::program_of(*job.spec);
  evidence.text =
      fmt::format("no GPU activity and no output for {}", base::written(job.spec->hang_timeout));
  for_each_gpu(snapshot, job, [&](const model::Node& node, const std::string& uuid) {
    sink_.observe(execution::EvidenceObserved{node.name, uuid, evidence});
  });
}

base::Duration hang_timeout_on_clock(base::Duration awake, const model::GpuHolder& holder) {
  const std::int64_t share = holder.share.value();
  const std::int64_t whole = base::kWholeGpu.value();
  const bool takes_turns = holder.mode == model::ShareMode::kTimeSlice;
  if (!takes_turns || share <= 0 || share >= whole) return awake;
  constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max();
  return base::Duration(std::min(awake.value() / share, kLongest / whole) * whole);
}

std::optional<std::uint64_t> output_mark_of(const std::string& path) {
  struct stat seen{};
  if (::stat(path.c_str(), &seen) != 0) return std::nullopt;
  const auto seconds = static_cast<std::uint64_t>(seen.st_mtim.tv_sec);
  const auto nanoseconds = static_cast<std::uint64_t>(seen.st_mtim.tv_nsec);
  const std::uint64_t written_at = seconds * 1'000'000'000 + nanoseconds;
  return written_at * 31 + static_cast<std::uint64_t>(seen.st_size);
}

}  // namespace gpu_platform::monitoring
