#include "shims/submission/start_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/parse.h"
#include "client/answer.h"
#include "client/request_text.h"
#include "gpu_platform/v1/planning.pb.h"
#include "model/job_spec.h"
#include "shims/text/host_list.h"
#include "shims/views/job_view.h"
#include "shims/views/node_view.h"

namespace gpu_platform::shims {

namespace {

// The CPUs of the job on all its nodes: those that it asks for, else the nodes' share for its GPUs.
std::int64_t cpus_of_request(client::Client& client, const v1::JobSpec& spec,
                             const std::vector<std::string>& nodes) {
  const std::int64_t count = std::max<std::int64_t>(1, std::ssize(nodes));
  if (spec.has_cpus()) return spec.cpus() * count;
  const std::int64_t gpus = spec.gpus();
  std::int64_t cpus = 0;
  if (const auto all = list_nodes(client)) {
    for (const NodeView& node : *all) {
      if (std::ranges::find(nodes, node.name) == nodes.end()) continue;
      std::int64_t there = 0;
      for (const NodeGpus& of_type : node.gpus) there += of_type.total;
      cpus += there > 0 ? node.cpus * gpus / there : 1;
    }
  }
  return std::max(cpus, count);
}

// The number that the job would have, as far as the caller sees others' jobs.
std::int64_t next_id(client::Client& client) {
  const auto page = client.ask<v1::ListJobsResponse>("/v1/jobs?all=true&limit=1", "a list");
  std::int64_t last = 0;
  if (!page) return 1;
  for (const v1::Job& job : page->jobs()) {
    const auto id = base::parse_count(job.id(), 1, INT64_MAX);
    last = std::max(last, static_cast<std::int64_t>(id.value_or(0)));
  }
  return last + 1;
}

}  // namespace

client::Called<StartCheck> check_start(client::Client& client, const v1::JobSpec& spec,
                                       base::Instant now) {
  v1::CheckJobRequest request;
  *request.mutable_spec() = spec;
  request.mutable_spec()->clear_environment();
  request.mutable_spec()->clear_request_id();
  request.mutable_spec()->clear_hold();
  request.mutable_spec()->clear_dependency();
  const auto answer = client.post("/v1/check", client::request_text(request));
  if (!answer) return std::unexpected(answer.error());
  const auto result = client::read_answer<v1::CheckResult>(*answer, "what was checked");
  if (!result) return std::unexpected(result.error());
  StartCheck check;
  check.is_never = result->never();
  check.start =
      result->starts_now() ? std::optional(now) : client::time_of(result->estimated_start());
  check.nodes.assign(result->nodes().begin(), result->nodes().end());
  check.reasons.assign(result->reasons().begin(), result->reasons().end());
  return check;
}

int tell_start(CommandCall& call, client::Client& client, const v1::JobSpec& spec) {
  const auto check = check_start(client, spec, call.around().now());
  if (!check) return call.fail(check.error());
  if (!check->start) {
    for (const std::string& reason : check->reasons) call.fail(reason);
    call.console().err(fmt::format("allocation failure: {}\n",
                                   check->is_never ? "Requested node configuration is not available"
                                                   : "Requested nodes are busy"));
    return 1;
  }
  const auto partition = spec.labels().find("slurm.partition");
  call.console().err(
      fmt::format("{}: Job {} to start at {} using {} processors on nodes {} in partition {}\n",
                  call.name(), next_id(client), slurm_time(check->start, "Unknown"),
                  cpus_of_request(client, spec, check->nodes), host_list(check->nodes),
                  partition == spec.labels().end() ? "" : partition->second));
  return 0;
}

}  // namespace gpu_platform::shims
