#include "cli/jobs/await_empty.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/text/job_names.h"
#include "cli/text/text.h"
#include "gpu_platform/v1/cluster.pb.h"

namespace gpu_platform::cli {

namespace {

constexpr base::Duration kBetweenStatuses = base::seconds(2);
constexpr std::size_t kJobsShown = 10;

// What still keeps it: jobs by their ids, and CPUs and memory of jobs that have no GPUs.
struct Holders {
  std::set<std::string> jobs;
  bool has_others = false;  // jobs without GPUs, or whose ids the caller may not see

  bool empty() const { return jobs.empty() && !has_others; }
  bool operator==(const Holders&) const = default;
};

bool is_part_of(const v1::Gpu& gpu, const DrainedPart& part) {
  if (part.gpu_id) return gpu.uuid() == *part.gpu_id;
  if (part.gpu) return fmt::format("{}:{}", gpu.node(), gpu.index()) == *part.gpu;
  return gpu.node() == part.node;
}

Holders holders_of(const v1::Status& status, const DrainedPart& part) {
  Holders holders;
  for (const v1::Gpu& gpu : status.gpus()) {
    if (is_part_of(gpu, part)) holders.jobs.insert(gpu.jobs().begin(), gpu.jobs().end());
  }
  for (const v1::Node& node : status.nodes()) {
    const bool holds = node.cpus_allocated() > 0 || node.memory_allocated_bytes() > 0;
    if (node.name() == part.node && holds && holders.jobs.empty()) holders.has_others = true;
  }
  return holders;
}

std::string part_name(const DrainedPart& part) {
  if (part.node) return "node " + *part.node;
  return "GPU " + part.gpu.value_or(part.gpu_id.value_or(""));
}

std::string holders_text(Client& client, const Holders& holders, const DrainedPart& part) {
  if (holders.jobs.empty())
    return fmt::format("jobs without GPUs still run on {}", part_name(part));
  const JobLabels names = job_names(client, holders.jobs);
  std::vector<std::string> shown;
  for (const std::string& id : holders.jobs) shown.push_back(label_of(names, id));
  const std::size_t all = shown.size();
  shown.resize(std::min(all, kJobsShown));
  return fmt::format("{} still {} {}: {}{}", counted(all, "job"), all == 1 ? "holds" : "hold",
                     part_name(part), fmt::join(shown, ", "),
                     all > shown.size() ? fmt::format(" and {} more", all - shown.size()) : "");
}

}  // namespace

int await_empty(Console& console, Client& client, const DrainedPart& part,
                std::optional<base::Duration> at_most) {
  const ProcessEnvironment& around = console.process_environment();
  const base::Instant began = around.steady();
  BackOff back_off(console, client::kRetryTimeout);
  std::optional<Holders> before;
  while (true) {
    const auto status = client.ask<v1::Status>("/v1/status", "the status");
    if (status) {
      back_off.reset();
      Holders holders = holders_of(*status, part);
      if (holders.empty()) {
        console.note(fmt::format("{} is empty: no job holds it", part_name(part)));
        return kOk;
      }
      if (before != holders) console.note(holders_text(client, holders, part));
      before = std::move(holders);
    } else if (!status.error().is_passing() || !back_off.wait(status.error(), -1)) {
      return report(console, status.error(), false);
    }
    if (at_most && around.steady() - began >= *at_most) {
      console.note(fmt::format("{} is not empty yet; it stays drained", part_name(part)));
      return kTimedOut;
    }
    around.pause(kBetweenStatuses, -1);
  }
}

}  // namespace gpu_platform::cli
