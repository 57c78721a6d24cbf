#include "scheduling/reservations/reservations.h"

#include <algorithm>
#include <iterator>

namespace gpu_platform::scheduling {

namespace {

std::optional<model::Occurrence> occurrence_in(const model::Reservation& reservation,
                                               const Span& span) {
  return occurrence_between(reservation, span.begin, span.end);
}

std::optional<model::Occurrence> occurrence_of_others(const model::Reservation& reservation,
                                                      const model::ResourceRequest& request,
                                                      const Span& span) {
  if (reservation.name == request.reservation) return std::nullopt;
  return occurrence_in(reservation, span);
}

const model::ReservationPart* part_on(const model::Reservation& reservation, model::NodeId node) {
  const auto found =
      std::ranges::lower_bound(reservation.parts, node, {}, &model::ReservationPart::node);
  return found != reservation.parts.end() && found->node == node ? &*found : nullptr;
}

}  // namespace

std::optional<base::Instant> Reservations::next_change(base::Instant now) const {
  std::optional<base::Instant> next;
  for (const auto& [name, reservation] : reservations_) {
    const auto occurrence = occurrence_after(reservation, now);
    if (!occurrence) continue;
    const base::Instant at = occurrence->begin > now ? occurrence->begin : occurrence->end;
    next = std::min(next.value_or(at), at);
  }
  return next;
}

bool Reservations::is_any_between(base::Instant begin, base::Instant end) const {
  return std::ranges::any_of(reservations_, [&](const auto& entry) {
    return occurrence_in(entry.second, {begin, end}).has_value();
  });
}

std::vector<Reserved> Reservations::of_others(const model::ResourceRequest& request,
                                              const Span& span) const {
  std::vector<Reserved> others;
  for (const auto& [name, reservation] : reservations_) {
    if (const auto when = occurrence_of_others(reservation, request, span)) {
      others.push_back({&reservation, *when});
    }
  }
  std::ranges::stable_sort(others, {}, [](const Reserved& each) { return each.when.begin; });
  return others;
}

std::vector<Reserved> Reservations::beside(const model::Reservation& of) const {
  std::vector<Reserved> others;
  for (const auto& [name, reservation] : reservations_) {
    if (name == of.name) continue;
    if (const auto when = first_common(reservation, of)) others.push_back({&reservation, *when});
  }
  return others;
}

void Reservations::withhold_from(Trial& trial, const model::ResourceRequest& request,
                                 Others others) const {
  for (const Reserved& other : others) {
    for (const model::ReservationPart& part : other.reservation->parts) {
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

bool Reservations::has_own_during(const model::ResourceRequest& request, const Span& span) const {
  if (request.reservation.empty()) return true;
  const model::Reservation* own = find(request.reservation);
  const auto when = own == nullptr ? std::nullopt : occurrence_at(*own, span.begin);
  return when && span.end <= when->end;
}

bool Reservations::allow(const model::ResourceRequest& request, const model::Allocation& allocation,
                         const Span& span) const {
  if (find_in_the_way(request, allocation, span) || !has_own_during(request, span)) return false;
  return request.reservation.empty() || lies_in(*find(request.reservation), allocation);
}

std::optional<Reserved> Reservations::find_in_the_way(const model::ResourceRequest& request,
                                                      const model::Allocation& allocation,
                                                      const Span& span) const {
  for (const auto& [name, reservation] : reservations_) {
    const auto when = occurrence_of_others(reservation, request, span);
    if (when && touches(reservation, allocation)) return Reserved{&reservation, *when};
  }
  return std::nullopt;
}

std::optional<Reservations::OfNode> Reservations::withheld_on(const model::ResourceRequest& request,
                                                              model::NodeId node,
                                                              Others others) const {
  std::optional<OfNode> of_node;
  const auto withhold = [&](GpuMask gpus, bool whole_node) {
    if (!of_node) of_node.emplace();
    of_node->withheld.gpus |= gpus;
    of_node->withheld.whole_node |= whole_node;
  };
  for (const Reserved& other : others) {
    const model::ReservationPart* part = part_on(*other.reservation, node);
    if (part == nullptr) continue;
    withhold(part->gpus, part->whole_node);
    of_node->is_by_others = true;
  }
  if (request.reservation.empty()) return of_node;
  const model::Reservation* own = find(request.reservation);
  const model::ReservationPart* part = own == nullptr ? nullptr : part_on(*own, node);
  if (part == nullptr) {
    withhold(0, true);
  } else if (!part->whole_node) {
    withhold(~part->gpus, false);
  }
  return of_node;
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
