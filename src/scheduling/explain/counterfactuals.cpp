#include "scheduling/explain/counterfactuals.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/parse.h"
#include "model/job_spec.h"

namespace gpu_platform::scheduling {

namespace {

constexpr std::size_t kMaxTypes = 3;
constexpr std::uint32_t kMaxGpusTried = 64;  // one by one; below that by halves

// Returns the largest number in [1, most] that suffices, if every smaller one does too; 0: none
// does.
template <class WillDo>
std::uint64_t largest(std::uint64_t most, const WillDo& will_do) {
  std::uint64_t good = 0;
  std::uint64_t bad = most + 1;
  while (good + 1 < bad) {
    const std::uint64_t middle = good + (bad - good) / 2;
    (will_do(middle) ? good : bad) = middle;
  }
  return good;
}

class Search {
 public:
  Search(WhatIf& what_if, const Cluster& cluster, const WaitingJob& job)
      : what_if_(what_if), cluster_(cluster), job_(job) {}

  std::vector<Counterfactual> run() {
    if (starts(job_.spec->request, job_.spec->time_limit)) return {};
    fewer_gpus();
    smaller_part();
    other_types();
    less_gpu_memory();
    across_sockets();
    any_capacity();
    degraded();
    fewer_cpus();
    less_memory();
    less_time();
    preemptible();
    return std::move(found_);
  }

 private:
  bool starts(const model::ResourceRequest& request, base::Duration time_limit) {
    model::JobSpec spec = *job_.spec;
    spec.request = request;
    spec.time_limit = time_limit;
    return starts(std::move(spec));
  }
  bool starts(model::JobSpec spec) {
    WaitingJob changed = job_;
    changed.spec = std::make_shared<const model::JobSpec>(std::move(spec));
    return what_if_.start_of(changed).has_value();
  }
  bool starts(const model::ResourceRequest& request) {
    return starts(request, job_.spec->time_limit);
  }
  void found(Change change, model::ResourceRequest request) {
    found_.push_back({change, std::move(request), job_.spec->time_limit});
  }

  // A number mostly suffices if a larger one does, but not always: a node's share of the CPUs
  // changes with the number, and three GPUs may fit where four do not. So each number is tried if
  // there are few.
  void fewer_gpus() {
    model::ResourceRequest request = job_.spec->request;
    if (request.gpus < 2) return;
    const auto will_do = [&](std::uint64_t count) {
      request.gpus = static_cast<std::uint32_t>(count);
      return starts(request);
    };
    std::uint64_t count = request.gpus - 1;
    if (count > kMaxGpusTried)
      count = std::max<std::uint64_t>(largest(count, will_do), kMaxGpusTried);
    while (count > 0 && !will_do(count)) --count;
    if (count == 0) return;
    request.gpus = static_cast<std::uint32_t>(count);
    found(Change::kGpus, request);
  }

  // Counted in thousandths of a GPU.
  void smaller_part() {
    model::ResourceRequest request = job_.spec->request;
    if (!model::is_part(request)) return;
    constexpr std::int64_t kThousandth = base::kWholeGpu.value() / 1000;
    const auto most = static_cast<std::uint64_t>((request.share_per_gpu.value() - 1) / kThousandth);
    const std::uint64_t count = largest(most, [&](std::uint64_t thousandths) {
      request.share_per_gpu = base::GpuShare(static_cast<std::int64_t>(thousandths) * kThousandth);
      return starts(request);
    });
    if (count == 0) return;
    request.share_per_gpu = base::GpuShare(static_cast<std::int64_t>(count) * kThousandth);
    found(Change::kGpuShare, request);
  }

  // The types of the cluster that the request does not accept, with the number of GPUs of each.
  std::map<std::string, std::uint64_t> types_not_asked_for() const {
    std::set<TypeIndex> accepted;
    for (const std::string& wanted : job_.spec->request.gpu_types) {
      const std::vector<bool>& by_number = cluster_.types().accepted_by(wanted);
      for (std::size_t i = 0; i < by_number.size(); ++i) {
        if (by_number[i]) accepted.insert(static_cast<TypeIndex>(i));
      }
    }
    std::map<std::string, std::uint64_t> types;
    for (const auto& [shape, nodes] : cluster_.shapes()) {
      for (const GpuPool& pool : nodes.pools) {
        if (accepted.contains(pool.type)) continue;
        types[std::string(cluster_.types().name_of(pool.type))] += nodes.nodes_up;
      }
    }
    return types;
  }

  void other_types() {
    model::ResourceRequest request = job_.spec->request;
    if (request.gpus == 0 || request.gpu_types.empty()) return;
    std::vector<std::pair<std::uint64_t, std::string>> by_number;
    for (const auto& [type, nodes] : types_not_asked_for()) by_number.emplace_back(nodes, type);
    std::ranges::stable_sort(by_number, std::ranges::greater(),
                             [](const auto& e) { return e.first; });
    std::size_t count = 0;
    for (auto& [nodes, type] : by_number) {
      if (count == kMaxTypes) return;
      request.gpu_types = {std::move(type)};
      if (!starts(request)) continue;
      found(Change::kGpuTypes, request);
      ++count;
    }
  }

  void less_gpu_memory() {
    model::ResourceRequest request = job_.spec->request;
    if (request.gpus == 0 || request.gpu_memory == base::Bytes()) return;
    std::set<base::Bytes, std::greater<>> sizes;
    for (const auto& [shape, nodes] : cluster_.shapes()) {
      for (const GpuPool& pool : nodes.pools) {
        if (pool.memory < job_.spec->request.gpu_memory) sizes.insert(pool.memory);
      }
    }
    for (const base::Bytes size : sizes) {
      request.gpu_memory = size;
      if (starts(request)) return found(Change::kGpuMemory, request);
    }
  }

  void across_sockets() {
    model::ResourceRequest request = job_.spec->request;
    if (request.gpus < 2 || request.numa == model::NumaPolicy::kAllowCross) return;
    request.numa = model::NumaPolicy::kAllowCross;
    if (starts(request)) found(Change::kNuma, request);
  }

  void any_capacity() {
    model::ResourceRequest request = job_.spec->request;
    if (request.capacity == model::CapacityRequest::kAny) return;
    request.capacity = model::CapacityRequest::kAny;
    if (starts(request)) found(Change::kCapacity, request);
  }

  void degraded() {
    model::ResourceRequest request = job_.spec->request;
    const bool has_any = request.gpus > 0 && !cluster_.nodes_with_degraded().empty();
    if (request.accept_degraded || !has_any) return;
    request.accept_degraded = true;
    if (starts(request)) found(Change::kDegraded, request);
  }

  // Returns the most CPUs, or the most memory, of any node.
  template <class Amount>
  std::uint64_t most_of_a_node(const Amount& amount_of) const {
    std::uint64_t most = 0;
    for (const auto& [shape, nodes] : cluster_.shapes()) {
      most = std::max(most, static_cast<std::uint64_t>(amount_of(shape)));
    }
    return most;
  }

  void fewer_cpus() {
    model::ResourceRequest request = job_.spec->request;
    const std::uint64_t most =
        request.cpus ? *request.cpus - 1
                     : most_of_a_node([](const NodeShape& shape) { return shape.cpus; });
    const std::uint64_t count = largest(most, [&](std::uint64_t cpus) {
      request.cpus = static_cast<std::uint32_t>(cpus);
      return starts(request);
    });
    if (count == 0) return;
    request.cpus = static_cast<std::uint32_t>(count);
    found(Change::kCpus, request);
  }

  // Counted in whole GiB.
  void less_memory() {
    model::ResourceRequest request = job_.spec->request;
    const std::uint64_t most =
        request.memory
            ? static_cast<std::uint64_t>((request.memory->value() - 1) / base::kGiB.value())
            : most_of_a_node(
                  [](const NodeShape& shape) { return shape.memory.value() / base::kGiB.value(); });
    const std::uint64_t count = largest(most, [&](std::uint64_t gib) {
      request.memory = base::kGiB * static_cast<std::int64_t>(gib);
      return starts(request);
    });
    if (count == 0) return;
    request.memory = base::kGiB * static_cast<std::int64_t>(count);
    found(Change::kMemory, request);
  }

  // Counted in whole minutes.
  void less_time() {
    const base::Duration limit = job_.spec->time_limit;
    const model::ResourceRequest& request = job_.spec->request;
    if (limit <= base::minutes(1)) return;
    const auto most = static_cast<std::uint64_t>((limit.value() - 1) / base::minutes(1).value());
    const auto in_minutes = [](std::uint64_t count) {
      return base::minutes(static_cast<std::int64_t>(count));
    };
    const std::uint64_t count =
        largest(most, [&](std::uint64_t n) { return starts(request, in_minutes(n)); });
    if (count > 0) found_.push_back({Change::kTimeLimit, request, in_minutes(count)});
  }

  // A job that takes input and has no terminal cannot begin anew.
  void preemptible() {
    model::JobSpec spec = *job_.spec;
    if (spec.preemptible == true || !model::can_begin_anew(spec)) return;
    spec.preemptible = true;
    if (starts(std::move(spec))) found(Change::kPreemptible, job_.spec->request);
  }

  WhatIf& what_if_;
  const Cluster& cluster_;
  const WaitingJob& job_;
  std::vector<Counterfactual> found_;
};

}  // namespace

std::string_view to_string(Change change) {
  switch (change) {
    case Change::kGpus:
      return "gpus";
    case Change::kGpuShare:
      return "gpu_share";
    case Change::kGpuTypes:
      return "gpu_types";
    case Change::kGpuMemory:
      return "gpu_memory";
    case Change::kNuma:
      return "numa";
    case Change::kCapacity:
      return "capacity";
    case Change::kDegraded:
      return "accept_degraded";
    case Change::kCpus:
      return "cpus";
    case Change::kMemory:
      return "memory";
    case Change::kTimeLimit:
      return "time_limit";
    case Change::kPreemptible:
      return "preemptible";
  }
  CHECK(false);
  std::unreachable();
}

std::string option_of(const Counterfactual& changed) {
  const model::ResourceRequest& request = changed.request;
  switch (changed.change) {
    case Change::kGpus:
      return fmt::format("{} {}", request.nodes > 1 ? "--gpus-per-node" : "--gpus", request.gpus);
    case Change::kGpuShare:
      return fmt::format("--gpus {}", model::written(request.share_per_gpu));
    case Change::kGpuTypes:
      return fmt::format("--gpu-type {}", fmt::join(request.gpu_types, ","));
    case Change::kGpuMemory:
      return fmt::format("--gpu-memory {}", base::written(request.gpu_memory));
    case Change::kNuma:
      return "--allow-cross-numa";
    case Change::kCapacity:
      return fmt::format("--capacity {}", model::to_string(request.capacity));
    case Change::kDegraded:
      return "--accept-degraded";
    case Change::kCpus:
      return fmt::format("--cpus {}", request.cpus.value_or(0));
    case Change::kMemory:
      return fmt::format("--memory {}", base::written(request.memory.value_or(base::Bytes())));
    case Change::kTimeLimit:
      return fmt::format("--time {}", base::written(changed.time_limit));
    case Change::kPreemptible:
      return "--preemptible";
  }
  CHECK(false);
  std::unreachable();
}

std::vector<Counterfactual> counterfactuals(WhatIf& what_if, const Cluster& cluster,
                                            const WaitingJob& job) {
  return Search(what_if, cluster, job).run();
}

}  // namespace gpu_platform::scheduling
