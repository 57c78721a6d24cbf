#include "api/convert/job_step.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "api/convert/enums.h"
#include "api/convert/text_forms.h"

namespace gpu_platform::api {

namespace {

using NodeParts = std::vector<model::NodeAllocation>;

std::uint64_t unsigned_bytes(base::Bytes bytes) {
  return static_cast<std::uint64_t>(bytes.value());
}

std::string node_name_at(const NodeParts& parts, std::size_t place, const Nodes& nodes) {
  const model::NodeId id = parts[place].node;
  return node_name(nodes.find(id.value), id);
}

void put_step_nodes(const model::JobStep& step, const NodeParts& parts, const Nodes& nodes,
                    v1::JobStep& out) {
  for (const std::uint32_t place : step.nodes) {
    if (place < parts.size()) out.add_nodes(node_name_at(parts, place, nodes));
  }
  if (!step.nodes.empty()) return;
  for (std::size_t place = 0; place < parts.size(); ++place)
    out.add_nodes(node_name_at(parts, place, nodes));
}

void put_step_use(const model::StepUse& use, v1::JobStep& out) {
  out.set_user_cpu_seconds(in_seconds(use.user_time));
  out.set_system_cpu_seconds(in_seconds(use.system_time));
  out.set_peak_memory_bytes(unsigned_bytes(use.peak_memory));
  out.set_all_memory_bytes(unsigned_bytes(use.all_memory));
  out.set_peak_memory_task(use.peak_task);
  out.set_least_cpu_seconds(in_seconds(use.least_time));
  out.set_least_cpu_task(use.least_task);
}

void put_step(const model::JobStep& step, const model::Attempt& attempt, const Nodes& nodes,
              v1::JobStep& out) {
  out.set_attempt(attempt.number);
  out.set_number(step.number);
  out.set_name(step.name);
  out.set_tasks(step.tasks);
  put_step_nodes(step, attempt.allocation.nodes, nodes, out);
  out.set_cpus(step.cpus);
  out.set_memory_bytes(unsigned_bytes(step.memory));
  out.set_gpus(step.gpus);
  to_proto(step.started_at, *out.mutable_started_at());
  if (!step.ended_at.is_set()) return;
  to_proto(step.ended_at, *out.mutable_ended_at());
  if (step.exit.code) out.set_exit_code(*step.exit.code);
  if (step.exit.signal) out.set_signal(signal_name(*step.exit.signal));
  out.set_lost(to_proto(step.exit.lost));
  if (step.exit.lost == model::Lost::kNo) put_step_use(step.use, out);
}

// The places of the named nodes among those of the attempt; none if these are all.
base::Result<std::vector<std::uint32_t>> step_places(const v1::JobStep& step,
                                                     const NodeParts& parts, const Nodes& nodes) {
  std::vector<std::uint32_t> places;
  if (step.nodes().empty()) return places;
  std::map<std::string, std::uint32_t, std::less<>> known;
  for (std::uint32_t place = 0; place < parts.size(); ++place)
    known.emplace(node_name_at(parts, place, nodes), place);
  for (const std::string& name : step.nodes()) {
    const auto found = known.find(name);
    if (found == known.end())
      return base::invalid("nodes", fmt::format("nodes: '{}' is not a node of the job", name));
    places.push_back(found->second);
  }
  std::ranges::sort(places);
  const auto repeats = std::ranges::unique(places);
  places.erase(repeats.begin(), repeats.end());
  if (places.size() == parts.size()) places.clear();
  return places;
}

base::Bytes signed_bytes(std::uint64_t bytes) {
  return base::Bytes(static_cast<std::int64_t>(bytes));
}

// The kernel counts CPU time in microseconds.
base::Duration cpu_time(double seconds) {
  return base::Duration(std::llround(seconds * 1e6) * 1000);
}

model::StepUse reported_use(const v1::JobStep& step) {
  model::StepUse use;
  use.user_time = cpu_time(step.user_cpu_seconds());
  use.system_time = cpu_time(step.system_cpu_seconds());
  use.peak_memory = signed_bytes(step.peak_memory_bytes());
  use.all_memory = signed_bytes(step.all_memory_bytes());
  use.peak_task = step.peak_memory_task();
  use.least_time = cpu_time(step.least_cpu_seconds());
  use.least_task = step.least_cpu_task();
  return use;
}

}  // namespace

void add_steps(const model::Job& job, const Nodes& nodes, v1::Job& out) {
  for (const model::Attempt& attempt : job.attempts) {
    for (const base::Shared<model::JobStep>& step : *attempt.steps)
      put_step(*step, attempt, nodes, *out.add_steps());
  }
}

base::Result<model::RecordStep> to_model(const v1::JobStep& step, const model::Job& job,
                                         const Nodes& nodes) {
  model::RecordStep command;
  command.attempt = {job.id, step.attempt()};
  model::JobStep& out = command.step;
  out.number = step.number();
  out.name = step.name();
  out.tasks = step.tasks();
  if (!job.attempts.empty()) {
    TRY_ASSIGN(out.nodes, step_places(step, job.attempts.back().allocation.nodes, nodes));
  }
  out.cpus = step.cpus();
  out.memory = signed_bytes(step.memory_bytes());
  out.gpus = step.gpus();
  if (step.has_started_at()) out.started_at = to_model(step.started_at());
  if (step.has_ended_at()) out.ended_at = to_model(step.ended_at());
  if (step.has_exit_code()) out.exit.code = static_cast<std::uint8_t>(step.exit_code());
  if (step.has_signal()) {
    out.exit.signal = signal_number(step.signal());
    if (!out.exit.signal)
      return base::invalid("signal", "signal: must be the name of a signal, as in \"SIGKILL\"");
  }
  if (step.lost() != v1::LOST_UNSPECIFIED) out.exit.lost = model::Lost::kUnknown;
  out.use = reported_use(step);
  return command;
}

}  // namespace gpu_platform::api
