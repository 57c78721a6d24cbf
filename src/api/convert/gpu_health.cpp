#include "api/convert/gpu_health.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/convert/cluster.h"
#include "api/convert/gpu_metrics.h"

namespace gpu_platform::api {

namespace {

// A line of text has room for so many.
constexpr std::size_t kMaxPids = 4;

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

}  // namespace

void to_proto(const model::GpuProcess& process, v1::GpuProcess& out) {
  out.set_pid(process.pid);
  if (!process.user.empty()) out.set_user(process.user);
  if (!process.command.empty()) out.set_command(process.command);
  if (process.memory) out.set_memory_bytes(static_cast<std::uint64_t>(process.memory->value()));
  if (process.job) out.set_job(fmt::format_int(process.job->value).str());
}

void to_proto(const model::Gpu& gpu, const model::Node& node, std::uint32_t index,
              const model::GpuReading* reading, v1::GpuHealth& out) {
  to_proto(gpu, node, index, reading, *out.mutable_gpu());
  if (reading == nullptr) return;
  if (reading->at.is_set()) to_proto(reading->at, *out.mutable_read_at());
  if (!reading->problem.empty()) out.set_problem(reading->problem);
  if (reading->power_limit) {
    out.set_power_limit_watts(static_cast<double>(reading->power_limit->value()) / 1000);
  }
  put_metrics(*reading, out);
  for (const model::SeenXid& seen : reading->xids) {
    v1::Xid& xid = *out.add_xids();
    xid.set_xid(seen.xid);
    if (seen.at.is_set()) to_proto(seen.at, *xid.mutable_at());
  }
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
  const model::Taint* const sick = model::find_taint(gpu.taints, model::TaintSource::kHealth);
  const bool is_said = sick != nullptr && sick->effect == model::TaintEffect::kOut;
  if (reading != nullptr && !reading->problem.empty() && !is_said) {
    parts.push_back("does not answer: " + reading->problem);
  }
  if (node.state != model::NodeState::kUp) parts.push_back(node_text(node));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace gpu_platform::api
