#include "scheduling/windows/windows.h"

#include <algorithm>
#include <iterator>

namespace gpu_platform::scheduling {

namespace {

bool is_between(const model::Window& window, const Span& span) {
  return window.begin < span.end && span.begin < window.end;
}

bool is_of_others(const model::Window& window, const model::ResourceRequest& request,
                  const Span& span) {
  return window.name != request.window && is_between(window, span);
}

const model::WindowPart* part_on(const model::Window& window, model::NodeId node) {
  const auto found = std::ranges::lower_bound(window.parts, node, {}, &model::WindowPart::node);
  return found != window.parts.end() && found->node == node ? &*found : nullptr;
}

void put_out_of_service(model::Node& node, GpuMask gpus) {
  for (std::size_t i = 0; i < std::min(node.gpus.size(), kMaxGpusPerNode); ++i) {
    if ((gpus >> i & 1) != 0) node.gpus[i].state = model::GpuState::kOffline;
  }
}

}  // namespace

std::optional<base::Instant> Windows::next_change(base::Instant now) const {
  std::optional<base::Instant> next;
  for (const auto& [name, window] : windows_) {
    for (const base::Instant at : {window.begin, window.end}) {
      if (at > now) next = std::min(next.value_or(at), at);
    }
  }
  return next;
}

bool Windows::is_any_between(base::Instant begin, base::Instant end) const {
  return std::ranges::any_of(
      windows_, [&](const auto& entry) { return is_between(entry.second, {begin, end}); });
}

void Windows::withhold_from(Trial& trial, const model::ResourceRequest& request,
                            const Span& span) const {
  for (const auto& [name, window] : windows_) {
    if (!is_of_others(window, request, span)) continue;
    for (const model::WindowPart& part : window.parts) {
      if (part.whole_node) {
        trial.shut(part.node);
      } else {
        trial.withhold(part.node, {.is_up = true, .gpus = part.gpus, .cpus = 0, .memory = {}});
      }
    }
  }
  const model::Window* own = request.window.empty() ? nullptr : find(request.window);
  if (own == nullptr) return;
  for (const model::WindowPart& part : own->parts) {
    if (part.whole_node) continue;
    trial.withhold(part.node, {.is_up = true, .gpus = ~part.gpus, .cpus = 0, .memory = {}});
  }
}

bool Windows::is_over_before(const model::ResourceRequest& request, base::Instant end) const {
  if (request.window.empty()) return true;
  const model::Window* own = find(request.window);
  return own != nullptr && end <= own->end;
}

bool Windows::allow(const model::ResourceRequest& request, const model::Allocation& allocation,
                    const Span& span) const {
  if (find_in_the_way(request, allocation, span) != nullptr) return false;
  if (request.window.empty()) return true;
  const model::Window* own = find(request.window);
  return own != nullptr && own->begin <= span.begin && span.end <= own->end &&
         lies_in(*own, allocation);
}

const model::Window* Windows::find_in_the_way(const model::ResourceRequest& request,
                                              const model::Allocation& allocation,
                                              const Span& span) const {
  for (const auto& [name, window] : windows_) {
    if (is_of_others(window, request, span) && touches(window, allocation)) return &window;
  }
  return nullptr;
}

std::optional<Windows::Left> Windows::as_left_to(const model::ResourceRequest& request,
                                                 const model::Node& node, const Span& span) const {
  std::optional<Left> left;
  const auto keep_from_it = [&](GpuMask gpus, bool all) {
    if (!left) left = Left{node};
    put_out_of_service(left->node, gpus);
    if (all) left->node.state = model::NodeState::kOffline;
  };
  for (const auto& [name, window] : windows_) {
    const model::WindowPart* part = part_on(window, node.id);
    if (part == nullptr || !is_of_others(window, request, span)) continue;
    keep_from_it(part->gpus, part->whole_node);
    if (left->by == nullptr || window.begin < left->by->begin) left->by = &window;
  }
  if (request.window.empty()) return left;
  const model::Window* own = find(request.window);
  const model::WindowPart* part = own == nullptr ? nullptr : part_on(*own, node.id);
  if (part == nullptr) {
    keep_from_it(0, true);
  } else if (!part->whole_node) {
    keep_from_it(~part->gpus, false);
  }
  return left;
}

bool touches(const model::Window& window, const model::Allocation& allocation) {
  return std::ranges::any_of(allocation.nodes, [&](const model::NodeAllocation& each) {
    const model::WindowPart* part = part_on(window, each.node);
    return part != nullptr && (part->whole_node || (part->gpus & gpus_of(each)) != 0);
  });
}

bool lies_in(const model::Window& window, const model::Allocation& allocation) {
  return std::ranges::all_of(allocation.nodes, [&](const model::NodeAllocation& each) {
    const model::WindowPart* part = part_on(window, each.node);
    return part != nullptr && (part->whole_node || (gpus_of(each) & ~part->gpus) == 0);
  });
}

std::optional<model::ResourceRequest> request_inside(const model::Window& window,
                                                     const model::ResourceRequest& request) {
  std::vector<model::NodeId> nodes;
  for (const model::WindowPart& part : window.parts) {
    const bool is_named =
        request.nodelist.empty() || std::ranges::binary_search(request.nodelist, part.node);
    if (is_named) nodes.push_back(part.node);
  }
  if (nodes.empty()) return std::nullopt;
  model::ResourceRequest inside = request;
  inside.nodelist = std::move(nodes);
  return inside;
}

}  // namespace gpu_platform::scheduling
