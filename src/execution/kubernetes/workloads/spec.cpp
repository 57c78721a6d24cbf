#include "execution/kubernetes/workloads/spec.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {

namespace {

struct NamedPriority {
  std::string_view name;
  model::PriorityClass priority;
};
constexpr std::array kPriorities = {NamedPriority{"critical", model::PriorityClass::kCritical},
                                    NamedPriority{"high", model::PriorityClass::kHigh},
                                    NamedPriority{"medium", model::PriorityClass::kMedium},
                                    NamedPriority{"low", model::PriorityClass::kLow}};

base::Result<model::Priority> priority_of_text(const std::string& text) {
  if (text.empty()) return model::Priority();
  for (const NamedPriority& known : kPriorities) {
    if (known.name == text) return model::priority_of_class(known.priority);
  }
  return base::invalid(
      "priority", fmt::format("the annotation gpu-platform/priority of a pod is '{}'; it is one of "
                              "critical, high, medium and low",
                              text));
}

// What one pod of those that hold takes.
struct PodSize {
  std::uint32_t gpus = 0;
  std::uint64_t milli_cpus = 0;
  std::int64_t memory = 0;
};

std::uint64_t whole_cpus_of(std::uint64_t milli) {
  return (milli + 999) / 1000;
}

bool fits_on(const NodeSize& node, const PodSize& pod, std::uint64_t pods) {
  return pods * pod.gpus <= node.gpus && whole_cpus_of(pods * pod.milli_cpus) <= node.cpus &&
         static_cast<std::int64_t>(pods) * pod.memory <= node.memory.value();
}

// Zero: no node can hold one of them.
std::uint32_t pods_on_each(std::uint32_t pods, const PodSize& size,
                           const std::vector<NodeSize>& nodes) {
  for (std::uint32_t each = pods; each > 0; --each) {
    if (pods % each != 0) continue;
    const auto fits = [&](const NodeSize& node) { return fits_on(node, size, each); };
    if (std::ranges::any_of(nodes, fits)) return each;
  }
  return 0;
}

// They may ask for different CPUs and memory: the largest counts for all.
base::Result<PodSize> size_of_holders(const std::vector<const WorkloadPod*>& holders) {
  PodSize size{.gpus = holders.front()->gpus, .milli_cpus = 0, .memory = 0};
  for (const WorkloadPod* pod : holders) {
    if (pod->node_selector != holders.front()->node_selector) {
      return base::invalid("nodelist",
                           fmt::format("its pods {} and {} have different nodeSelectors",
                                       holders.front()->name, pod->name));
    }
    if (pod->gpus != size.gpus) {
      return base::invalid(
          "gpus", fmt::format("its pods ask for different numbers of GPUs: {} for {}, {} for {}",
                              holders.front()->name, size.gpus, pod->name, pod->gpus));
    }
    size.milli_cpus = std::max<std::uint64_t>(size.milli_cpus, pod->milli_cpus);
    size.memory = std::max(size.memory, pod->memory.value());
  }
  return size;
}

// Two pods cannot have the devices of one claim.
base::Status check_claims(const std::vector<const WorkloadPod*>& holders) {
  std::map<std::string_view, const WorkloadPod*> of;
  for (const WorkloadPod* pod : holders) {
    if (pod->claim.empty()) continue;
    const auto [known, is_new] = of.emplace(pod->claim, pod);
    if (is_new) continue;
    return base::invalid(
        "claim",
        fmt::format("its pods {} and {} name the same ResourceClaim {}, which the platform "
                    "is to make: each pod needs one of its own",
                    known->second->name, pod->name, pod->claim));
  }
  return {};
}

void put_request(model::ResourceRequest& request, const PodSize& size, std::uint32_t pods,
                 std::uint32_t on_each) {
  request.nodes = pods / on_each;
  request.gpus = size.gpus * on_each;
  if (size.milli_cpus > 0) {
    request.cpus = static_cast<std::uint32_t>(whole_cpus_of(size.milli_cpus * on_each));
  }
  if (size.memory > 0) request.memory = base::Bytes(size.memory * on_each);
}

}  // namespace

bool holds_gpus(const WorkloadPod& pod) {
  return pod.gpus > 0;
}

std::vector<const WorkloadPod*> holders_of(const std::vector<WorkloadPod>& pods) {
  const bool has_gpus = std::ranges::any_of(pods, holds_gpus);
  std::vector<const WorkloadPod*> holders;
  for (const WorkloadPod& pod : pods) {
    if (!has_gpus || holds_gpus(pod)) holders.push_back(&pod);
  }
  return holders;
}

std::vector<NodeSize> nodes_for(const WorkloadPod& pod, const std::vector<NodeSize>& nodes) {
  std::vector<NodeSize> admitted;
  std::ranges::copy_if(nodes, std::back_inserter(admitted), [&](const NodeSize& node) {
    return std::ranges::all_of(pod.node_selector, [&](const auto& wanted) {
      const auto label = node.labels.find(wanted.first);
      return label != node.labels.end() && label->second == wanted.second;
    });
  });
  return admitted;
}

base::Result<model::JobSpec> spec_of_workload(const std::vector<WorkloadPod>& pods,
                                              base::Duration time_limit,
                                              const std::vector<NodeSize>& nodes) {
  const std::vector<const WorkloadPod*> holders = holders_of(pods);
  CHECK(!holders.empty());
  const WorkloadPod& first = *holders.front();
  TRY_ASSIGN(const PodSize size, size_of_holders(holders));
  TRY(check_claims(holders));
  const auto count = static_cast<std::uint32_t>(holders.size());
  const std::uint32_t on_each = pods_on_each(count, size, nodes);
  if (on_each == 0) {
    return base::invalid(
        "gpus",
        fmt::format(
            "no node that its nodeSelector admits can hold its pod {}: it asks for {} GPUs, {} "
            "CPUs and {} bytes of memory",
            first.name, size.gpus, whole_cpus_of(size.milli_cpus), size.memory));
  }
  if (count / on_each > model::kMaxGangNodes) {
    return base::invalid("nodes", fmt::format("its {} pods would need {} nodes; the limit is {}",
                                              count, count / on_each, model::kMaxGangNodes));
  }
  model::JobSpec spec;
  TRY_ASSIGN(spec.priority, priority_of_text(first.priority));
  put_request(spec.request, size, count, on_each);
  spec.name = first.workload.name;
  spec.image = first.image;
  spec.command = first.command;
  if (spec.command.empty()) spec.command = {first.image.empty() ? first.name : first.image};
  spec.time_limit = time_limit == base::Duration() ? first.time_limit : time_limit;
  spec.workload = first.workload.key();
  spec.workload_pods = count;
  spec.retries = 0;
  return spec;
}

}  // namespace gpu_platform::execution
