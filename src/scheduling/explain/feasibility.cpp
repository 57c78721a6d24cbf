#include "scheduling/explain/feasibility.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "scheduling/explain/gpu_offer.h"
#include "scheduling/gang/place_gang.h"
#include "scheduling/part_rules.h"
#include "scheduling/placement/demand.h"
#include "scheduling/placement/place.h"
#include "scheduling/trial.h"

namespace gpu_platform::scheduling {

namespace {

std::string counted(std::uint32_t n, std::string_view unit) {
  return fmt::format("{} {}{}", n, unit, n == 1 ? "" : "s");
}

// Returns "80 GiB" if that is exact, else MiB rounded down, or bytes below one MiB.
std::string size_text(base::Bytes bytes) {
  const std::int64_t n = bytes.value();
  if (n != 0 && n % base::kGiB.value() == 0) return fmt::format("{} GiB", n / base::kGiB.value());
  if (n >= base::kMiB.value()) return fmt::format("{} MiB", n / base::kMiB.value());
  return fmt::format("{} bytes", n);
}

// "gpus 16: the largest node has 8 GPUs", for the field gpus and the value 16.
std::unexpected<base::Error> refusal(std::string_view field, std::string_view value,
                                     std::string_view why) {
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    fmt::format("{} {}: {}", field, value, why), std::string(field));
}

std::unexpected<base::Error> refusal(std::string_view field, std::uint32_t value,
                                     std::string_view why) {
  return refusal(field, std::to_string(value), why);
}

std::string where(const model::ResourceRequest& request) {
  std::string text;
  if (model::names_gpus(request)) text += " with the GPUs that it may use (gpus_only, gpus_avoid)";
  if (!request.nodelist.empty() || !request.exclude.empty()) text += " of those it may use";
  if (request.capacity != model::CapacityRequest::kAny) {
    text += fmt::format(" of {} capacity", model::to_string(request.capacity));
  }
  if (request.within != model::NetworkLevel::kAnywhere) {
    text += fmt::format(" in one {}", to_string(request.within));
  }
  return text;
}

// The first verdict about a node that the request may use.
Feasibility first_of_node(const model::ResourceRequest& request) {
  return request.gpus > 0 ? Feasibility::kGpuType : Feasibility::kCpus;
}

// What each node of a gang has to do: "give 8 GPUs of one type".
std::string part_text(const model::ResourceRequest& request) {
  return request.gpus == 0 ? std::string("hold one part of the job")
                           : fmt::format("give {} of one type", counted(request.gpus, "GPU"));
}

}  // namespace

FeasibilityCheck::FeasibilityCheck(const model::ResourceRequest& request, model::Sharing rules)
    : request_(request), rules_(std::move(rules)), verdict_(first_of_node(request)) {
  if (request.capacity != model::CapacityRequest::kAny) verdict_ = Feasibility::kCapacity;
  for (model::ResourceRequest& choice : by_choice(request))
    choices_.emplace_back(std::move(choice));
}

void FeasibilityCheck::visit(const model::Node& node) {
  if (!request_.engines.contains(node.engine)) {
    has_passed_ = true;
    return;
  }
  if (!may_use(request_, node.id)) return;
  if (!model::accepts(request_.capacity, node.capacity)) {
    has_passed_ = true;
    return;
  }
  verdict_ = std::max(verdict_, first_of_node(request_));
  for (Choice& choice : choices_) visit(node, choice);
}

void FeasibilityCheck::visit(const model::Node& node, Choice& choice) {
  const auto reach = [this](Feasibility verdict) { verdict_ = std::max(verdict_, verdict); };
  if (request_.gpus > 0) {
    const GpuOffer offer = choice.offers.of(node);
    if (!offer.has_type) return;
    max_gpu_memory_ = std::max(max_gpu_memory_, offer.largest_memory);
    reach(Feasibility::kGpuMemory);
    if (offer.capable == 0) return;
    reach(Feasibility::kShared);
    if (model::is_part(request_)) {
      const PartOffer part = choice.offers.part_of(node, rules_);
      is_kept_from_root_ = is_kept_from_root_ || part.is_kept_from_root;
      if (!part.is_shared) return;
    }
    max_gpus_ = std::max(max_gpus_, offer.capable);
    reach(Feasibility::kGpus);
    if (offer.capable < request_.gpus) return;
    max_on_socket_ = std::max(max_on_socket_, offer.capable_on_socket);
    reach(Feasibility::kSockets);
    if (!has_gpus_when_empty(choice.request, offer)) return;
  }
  const Demand demand = demand_on(request_, {.cpus = node.cpus,
                                             .memory = node.memory,
                                             .gpus = static_cast<std::uint32_t>(node.gpus.size())});
  max_cpus_ = std::max(max_cpus_, node.cpus);
  reach(Feasibility::kCpus);
  if (demand.cpus > node.cpus) return;
  max_memory_ = std::max(max_memory_, node.memory);
  reach(Feasibility::kMemory);
  if (demand.memory > node.memory) return;
  reach(Feasibility::kFits);
}

base::Status FeasibilityCheck::status() const {
  switch (verdict_) {
    case Feasibility::kCapacity:
      return refusal("capacity", model::to_string(request_.capacity),
                     fmt::format("no node{} is of that capacity class",
                                 are_all_listed() ? "" : " that it may use"));
    case Feasibility::kGpuType:
      if (model::names_gpus(request_)) {
        return refusal("gpus", request_.gpus,
                       fmt::format("no node{} has a GPU{}", allowed(), kind()));
      }
      if (request_.gpu_types.empty()) {
        return refusal("gpus", request_.gpus, fmt::format("no node{} has a GPU", allowed()));
      }
      return refusal("gpu_types", fmt::format("{}", fmt::join(request_.gpu_types, ",")),
                     fmt::format("no node{} has a GPU of {}", allowed(),
                                 request_.gpu_types.size() == 1 ? "that type" : "these types"));
    case Feasibility::kGpuMemory:
      return refusal("gpu_memory_bytes", size_text(request_.gpu_memory),
                     fmt::format("the largest GPU{}{} has {}",
                                 request_.gpu_types.empty() ? "" : " of the requested types",
                                 allowed(), size_text(max_gpu_memory_)));
    case Feasibility::kShared:
      return not_shared();
    case Feasibility::kGpus:
      return refusal(
          "gpus", fmt::format("{}{}", request_.gpus, request_.nodes > 1 ? " on each node" : ""),
          fmt::format("the largest node{} has {}{}", allowed(), counted(max_gpus_, "GPU"), kind()));
    case Feasibility::kSockets:
      return refusal("gpus", request_.gpus,
                     fmt::format("strict NUMA placement needs one socket, and the largest socket "
                                 "has {}{}",
                                 counted(max_on_socket_, "GPU"), kind()));
    case Feasibility::kCpus:
      return refusal("cpus", request_.cpus.value_or(1),
                     fmt::format("the largest node{}{} has {}", allowed(), with_the_gpus(),
                                 counted(max_cpus_, "CPU")));
    case Feasibility::kMemory:
      return refusal("memory_bytes", size_text(request_.memory.value_or(base::Bytes())),
                     fmt::format("the largest node{}{} has {}", allowed(), with_the_rest(),
                                 size_text(max_memory_)));
    case Feasibility::kFits:
      return {};
  }
  CHECK(false);
  std::unreachable();
}

// A part that no GPU can give: by the site's rules, or because no node has the mechanism.
base::Status FeasibilityCheck::not_shared() const {
  const auto refused = [&](std::string_view field, std::string_view value, std::string why) {
    return refusal(field, value, why + "; ask for a whole GPU instead");
  };
  const std::string share = model::written(request_.share_per_gpu);
  if (!rules_.is_on) {
    return refused("gpu_share", share,
                   "this site shares no GPUs ('sharing:' in its configuration)");
  }
  if (modes_for(rules_, request_).empty()) {
    return refused("share_mode", to_string(request_.share_mode.value_or(model::ShareMode::kNone)),
                   "this site does not share GPUs in this way ('sharing:' in its configuration)");
  }
  if (is_kept_from_root_) {
    return refusal("gpu_share", share,
                   fmt::format("a job of root can undo the walls of its part, and this site "
                               "accepts none weaker than {}; set sharing.weakest_rung: advisory, "
                               "submit the job as another user, or ask for a whole GPU",
                               model::to_string(rules_.weakest_rung)));
  }
  if (request_.require_isolation != model::Isolation::kNone) {
    return refused(
        "require_isolation", to_string(request_.require_isolation),
        fmt::format("no GPU{}{} has so strong a wall between its parts", kind(), allowed_nodes()));
  }
  if (request_.share_mode) {
    return refused("share_mode", to_string(*request_.share_mode),
                   fmt::format("no GPU{}{} can be shared in this way", kind(), allowed_nodes()));
  }
  return refused("gpu_share", share,
                 fmt::format("no GPU{}{} may be shared ('sharing:' in the site's configuration)",
                             kind(), allowed_nodes()));
}

std::string_view FeasibilityCheck::allowed_nodes() const {
  return are_all_listed() && !has_passed_ ? "" : " on the nodes that it may use";
}

bool FeasibilityCheck::are_all_listed() const {
  return request_.nodelist.empty() && request_.exclude.empty();
}

std::string_view FeasibilityCheck::allowed() const {
  return are_all_listed() && !has_passed_ ? "" : " that it may use";
}

std::string_view FeasibilityCheck::kind() const {
  if (model::names_gpus(request_)) return " of those that it may use (gpus_only, gpus_avoid)";
  const bool is_narrowed = !request_.gpu_types.empty() || request_.gpu_memory > base::Bytes();
  return is_narrowed ? " of the requested kind" : "";
}

std::string_view FeasibilityCheck::with_the_gpus() const {
  return request_.gpus > 0 ? " with these GPUs" : "";
}

std::string_view FeasibilityCheck::with_the_rest() const {
  return request_.gpus > 0 ? " with these GPUs and CPUs" : " with these CPUs";
}

void EmptyCluster::add(const model::Node& node) {
  cluster_.update(model::as_idle(node));
}

bool EmptyCluster::fits(const model::ResourceRequest& request) {
  Trial trial(cluster_);
  return place(trial, request).has_value();
}

// A larger number of parts never needs less.
std::uint32_t EmptyCluster::max_parts(const model::ResourceRequest& request) {
  model::ResourceRequest smaller = request;
  std::uint32_t fit = 0;
  std::uint32_t too_many = request.nodes;
  while (too_many - fit > 1) {
    smaller.nodes = fit + (too_many - fit) / 2;
    (fits(smaller) ? fit : too_many) = smaller.nodes;
  }
  return fit;
}

base::Status EmptyCluster::could_ever_fit(const model::ResourceRequest& request) {
  if (fits(request)) return {};
  if (!request.cross_node) {
    const std::uint32_t most = max_parts(request);
    return refusal(
        "nodes", request.nodes,
        fmt::format("{}{} can {}{}", most == 0 ? "no node" : "at most " + counted(most, "node"),
                    where(request), most > 1 ? "each " : "", part_text(request)));
  }
  // Names the largest number of GPUs that fits in equal parts.
  model::ResourceRequest smaller = request;
  while (smaller.gpus > 1) {
    --smaller.gpus;
    if (!fits(smaller)) continue;
    return refusal("gpus", request.gpus,
                   fmt::format("they must be in equal parts on several nodes{}, and the largest "
                               "smaller number that fits is {}",
                               where(request), smaller.gpus));
  }
  return refusal("gpus", request.gpus, fmt::format("no node{} has such a GPU", where(request)));
}

}  // namespace gpu_platform::scheduling
