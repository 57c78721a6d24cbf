#include "scheduling/reservations/reservations.h"

#include <algorithm>
#include <iterator>

namespace gpu_platform::scheduling {

namespace {

bool is_between(const model::Reservation& reservation, const Span& span) {
  return reservation.begin < span.end && span.begin < reservation.end;
}

bool is_of_others(const model::Reservation& reservation, const model::ResourceRequest& request,
                  const Span& span) {
  return reservation.name != request.reservation && is_between(reservation, span);
}

const model::ReservationPart* part_on(const model::Reservation& reservation, model::NodeId node) {
  const auto found =
      std::ranges::lower_bound(reservation.parts, node, {}, &model::ReservationPart::node);
  return found != reservation.parts.end() && found->node == node ? &*found : nullptr;
}

void put_out_of_service(model::Node& node, GpuMask gpus) {
  for (std::size_t i = 0; i < std::min(node.gpus.size(), kMaxGpusPerNode); ++i) {
    if ((gpus >> i & 1) != 0) node.gpus[i].state = model::GpuState::kOffline;
  }
}

}  // namespace

std::optional<base::Instant> Reservations::next_change(base::Instant now) const {
  std::optional<base::Instant> next;
  for (const auto& [name, reservation] : reservations_) {
    for (const base::Instant at : {reservation.begin, reservation.end}) {
      if (at > now) next = std::min(next.value_or(at), at);
    }
  }
  return next;
}

bool Reservations::is_any_between(base::Instant begin, base::Instant end) const {
  return std::ranges::any_of(
      reservations_, [&](const auto& entry) { return is_between(entry.second, {begin, end}); });
}

void Reservations::withhold_from(Trial& trial, const model::ResourceRequest& request,
                                 const Span& span) const {
  for (const auto& [name, reservation] : reservations_) {
    if (!is_of_others(reservation, request, span)) continue;
    for (const model::ReservationPart& part : reservation.parts) {
      if (part.whole_node) {
        trial.shut(part.node);
      } else {
        trial.withhold(part.node, {.is_up = true, .gpus = part.gpus, .cpus = 0, .memory = {}});
      }
    }
  }
  const model::Reservation* own = request.reservation.empty() ? nullptr : find(request.reservation);
  if (own == nullptr) return;
  for (const model::ReservationPart& part : own->parts) {
    if (part.whole_node) continue;
    trial.withhold(part.node, {.is_up = true, .gpus = ~part.gpus, .cpus = 0, .memory = {}});
  }
}

bool Reservations::is_over_before(const model::ResourceRequest& request, base::Instant end) const {
  if (request.reservation.empty()) return true;
  const model::Reservation* own = find(request.reservation);
  return own != nullptr && end <= own->end;
}

bool Reservations::allow(const model::ResourceRequest& request, const model::Allocation& allocation,
                         const Span& span) const {
  if (find_in_the_way(request, allocation, span) != nullptr) return false;
  if (request.reservation.empty()) return true;
  const model::Reservation* own = find(request.reservation);
  return own != nullptr && own->begin <= span.begin && span.end <= own->end &&
         lies_in(*own, allocation);
}

const model::Reservation* Reservations::find_in_the_way(const model::ResourceRequest& request,
                                                        const model::Allocation& allocation,
                                                        const Span& span) const {
  for (const auto& [name, reservation] : reservations_) {
    if (is_of_others(reservation, request, span) && touches(reservation, allocation))
      return &reservation;
  }
  return nullptr;
}

std::optional<Reservations::Left> Reservations::as_left_to(const model::ResourceRequest& request,
                                                           const model::Node& node,
                                                           const Span& span) const {
  std::optional<Left> left;
  const auto keep_from_it = [&](GpuMask gpus, bool all) {
    if (!left) left = Left{node};
    put_out_of_service(left->node, gpus);
    if (all) left->node.state = model::NodeState::kOffline;
  };
  for (const auto& [name, reservation] : reservations_) {
    const model::ReservationPart* part = part_on(reservation, node.id);
    if (part == nullptr || !is_of_others(reservation, request, span)) continue;
    keep_from_it(part->gpus, part->whole_node);
    if (left->by == nullptr || reservation.begin < left->by->begin) left->by = &reservation;
  }
  if (request.reservation.empty()) return left;
  const model::Reservation* own = find(request.reservation);
  const model::ReservationPart* part = own == nullptr ? nullptr : part_on(*own, node.id);
  if (part == nullptr) {
    keep_from_it(0, true);
  } else if (!part->whole_node) {
    keep_from_it(~part->gpus, false);
  }
  return left;
}

bool touches(const model::Reservation& reservation, const model::Allocation& allocation) {
  return std::ranges::any_of(allocation.nodes, [&](const model::NodeAllocation& each) {
    const model::ReservationPart* part = part_on(reservation, each.node);
    return part != nullptr && (part->whole_node || (part->gpus & gpus_of(each)) != 0);
  });
}

bool lies_in(const model::Reservation& reservation, const model::Allocation& allocation) {
  return std::ranges::all_of(allocation.nodes, [&](const model::NodeAllocation& each) {
    const model::ReservationPart* part = part_on(reservation, each.node);
    return part != nullptr && (part->whole_node || (gpus_of(each) & ~part->gpus) == 0);
  });
}

std::optional<model::ResourceRequest> request_inside(const model::Reservation& reservation,
                                                     const model::ResourceRequest& request) {
  std::vector<model::NodeId> nodes;
  for (const model::ReservationPart& part : reservation.parts) {
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
