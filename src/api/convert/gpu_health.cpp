#include "api/convert/gpu_health.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/convert/cluster.h"

namespace gpu_platform::api {

namespace {

// A line of text has room for so many.
constexpr std::size_t kMaxPids = 4;

double in_watts(base::Milliwatts power) {
  return static_cast<double>(power.value()) / 1000;
}

std::uint64_t bytes_of(base::Bytes bytes) {
  return static_cast<std::uint64_t>(bytes.value());
}

// "process 123", "processes 1, 2, 3, 4 and 5 more".
std::string pids_text(const std::vector<model::GpuProcess>& processes) {
  std::vector<std::uint32_t> pids;
  for (const model::GpuProcess& process : processes) {
    if (pids.size() < kMaxPids) pids.push_back(process.pid);
  }
  std::string text =
      fmt::format("process{} {}", processes.size() == 1 ? "" : "es", fmt::join(pids, ", "));
  if (processes.size() > kMaxPids) {
    text += fmt::format(" and {} more", processes.size() - kMaxPids);
  }
  return text;
}

std::string cleaning_text(const model::GpuReading* reading) {
  if (reading == nullptr || reading->processes.empty()) {
    return "waits until no process of its job is left on it";
  }
  const std::string pids = pids_text(reading->processes);
  return fmt::format("waits until {} {} left it", pids,
                     reading->processes.size() == 1 ? "has" : "have");
}

std::string node_text(const model::Node& node) {
  std::string text = fmt::format("node {} is {}", node.name, model::to_string(node.state));
  const std::string& cause = node.cause;
  if (!cause.empty()) text += ": " + cause;
  return text;
}

void put_memory_and_clocks(const model::GpuReading& reading, v1::GpuHealth& out) {
  if (reading.memory_utilization_percent) {
    out.set_memory_utilization_percent(*reading.memory_utilization_percent);
  }
  if (reading.memory_reserved) out.set_memory_reserved_bytes(bytes_of(*reading.memory_reserved));
  if (reading.power_limit) out.set_power_limit_watts(in_watts(*reading.power_limit));
  if (reading.clock_sm_mhz) out.set_clock_sm_mhz(*reading.clock_sm_mhz);
  if (reading.clock_memory_mhz) out.set_clock_memory_mhz(*reading.clock_memory_mhz);
  if (reading.throttle_reasons) {
    for (const std::string& reason : *reading.throttle_reasons) out.add_throttle_reasons(reason);
  }
}

void put_errors(const model::GpuReading& reading, v1::GpuHealth& out) {
  if (reading.ecc_corrected) out.set_ecc_corrected(*reading.ecc_corrected);
  if (reading.ecc_uncorrected) out.set_ecc_uncorrected(*reading.ecc_uncorrected);
  if (reading.remapped_rows_corrected) {
    out.set_remapped_rows_corrected(*reading.remapped_rows_corrected);
  }
  if (reading.remapped_rows_uncorrected) {
    out.set_remapped_rows_uncorrected(*reading.remapped_rows_uncorrected);
  }
  if (reading.remap_pending) out.set_remap_pending(*reading.remap_pending);
  if (reading.remap_failed) out.set_remap_failed(*reading.remap_failed);
  if (reading.recovery_action) out.set_recovery_action(*reading.recovery_action);
  for (const model::SeenXid& seen : reading.xids) {
    v1::Xid& xid = *out.add_xids();
    xid.set_xid(seen.xid);
    if (seen.at.is_set()) to_proto(seen.at, *xid.mutable_at());
  }
}

void put_links(const model::GpuReading& reading, v1::GpuHealth& out) {
  if (reading.pcie_sent_bytes_per_second) {
    out.set_pcie_sent_bytes_per_second(*reading.pcie_sent_bytes_per_second);
  }
  if (reading.pcie_received_bytes_per_second) {
    out.set_pcie_received_bytes_per_second(*reading.pcie_received_bytes_per_second);
  }
  if (reading.pcie_generation) out.set_pcie_generation(*reading.pcie_generation);
  if (reading.pcie_width) out.set_pcie_width(*reading.pcie_width);
  if (reading.pcie_replays) out.set_pcie_replays(*reading.pcie_replays);
  if (reading.nvlinks_active) out.set_nvlinks_active(*reading.nvlinks_active);
}

}  // namespace

void to_proto(const model::GpuProcess& process, v1::GpuProcess& out) {
  out.set_pid(process.pid);
  if (!process.user.empty()) out.set_user(process.user);
  if (!process.command.empty()) out.set_command(process.command);
  if (process.memory) out.set_memory_bytes(bytes_of(*process.memory));
  if (process.job) out.set_job(fmt::format_int(process.job->value).str());
}

void to_proto(const model::Gpu& gpu, const model::Node& node, std::uint32_t index,
              const model::GpuReading* reading, v1::GpuHealth& out) {
  to_proto(gpu, node, index, reading, *out.mutable_gpu());
  if (reading == nullptr) return;
  if (reading->at.is_set()) to_proto(reading->at, *out.mutable_read_at());
  if (!reading->problem.empty()) out.set_problem(reading->problem);
  put_memory_and_clocks(*reading, out);
  put_errors(*reading, out);
  put_links(*reading, out);
  for (const model::GpuProcess& process : reading->processes) {
    to_proto(process, *out.add_processes());
  }
}

std::string reason_of(const model::Gpu& gpu, const model::Node& node,
                      const model::GpuReading* reading) {
  std::vector<std::string> parts;
  if (!gpu.cause.empty()) parts.push_back(gpu.cause);
  if (gpu.state == model::GpuState::kCleaning) parts.push_back(cleaning_text(reading));
  if (std::string avoided = model::text_of_avoided(gpu.taints); !avoided.empty()) {
    parts.push_back(std::move(avoided));
  }
  if (reading != nullptr && !reading->problem.empty()) {
    parts.push_back("does not answer: " + reading->problem);
  }
  if (node.state != model::NodeState::kUp) parts.push_back(node_text(node));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace gpu_platform::api
