#include "controller/apply/gpu_clocks.h"

#include <algorithm>

#include "accounting/rest_lines.h"
#include "controller/rest_kind.h"

namespace gpu_platform::controller {

namespace {

// Time never runs backwards here: the interval has no less than no time.
void end_interval(Application& a, model::Node& node, std::uint32_t index) {
  accounting::append_rest_lines(accounting::resting_gpu(node, index),
                                a.state.books->reservations.all(), *a.state.prices, a.at,
                                a.out.ledger);
  node.gpus[index].clock.since = a.at;
}

bool is_described_as_it_is(const model::Gpu& gpu, const model::NodeInfo& info) {
  const auto found = std::ranges::find(info.gpus, gpu.info.uuid, &model::GpuInfo::uuid);
  return found != info.gpus.end() && found->type == gpu.info.type;
}

}  // namespace

void follow_clock(Application& a, model::Node& node, std::uint32_t index) {
  const base::GpuShare rest = rest_of(node.gpus.at(index));
  const model::RestKind kind = rest_kind_of(a.state, node, index);
  model::GpuClock& clock = node.gpus[index].clock;
  if (clock.since.is_set() && clock.rest == rest && clock.kind == kind) return;
  end_interval(a, node, index);
  clock.kind = kind;
  clock.rest = rest;
}

void follow_clocks(Application& a, model::Node& node) {
  for (std::uint32_t i = 0; i < node.gpus.size(); ++i) follow_clock(a, node, i);
}

void follow_clocks(Application& a, const model::Allocation& allocation) {
  for (const model::NodeAllocation& part : allocation.nodes) {
    if (part.grants.empty()) continue;
    model::Node& node = a.node(part.node);
    for (const model::GpuGrant& grant : part.grants) follow_clock(a, node, grant.gpu_index);
  }
}

void end_intervals_before(Application& a, model::Node& node, const model::NodeInfo& info) {
  const bool is_of_another_class = info.capacity != node.capacity;
  for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
    const bool changes = is_of_another_class || !is_described_as_it_is(node.gpus[i], info);
    if (changes) end_interval(a, node, i);
  }
}

void end_intervals_before_change(Application& a, const model::Reservation& reservation) {
  if (reservation.begin >= a.at) return;
  for (const model::ReservationPart& part : reservation.parts) {
    model::Node& node = a.node(part.node);
    for (std::uint32_t i = 0; i < std::min<std::size_t>(node.gpus.size(), 64); ++i) {
      const bool is_idle = node.gpus[i].clock.kind == model::RestKind::kIdle;
      if ((part.gpus >> i & 1) != 0 && is_idle) end_interval(a, node, i);
    }
  }
}

}  // namespace gpu_platform::controller
