#include "accounting/rest_lines.h"

#include <algorithm>

namespace gpu_platform::accounting {

namespace {

using model::LedgerLine;
using model::RestKind;

bool is_in_reservation(const model::Reservation& reservation, const RestingGpu& gpu) {
  constexpr std::uint32_t kPlaces = 64;  // of ReservationPart::gpus
  const auto part =
      std::ranges::lower_bound(reservation.parts, gpu.node, {}, &model::ReservationPart::node);
  return part != reservation.parts.end() && part->node == gpu.node && gpu.index < kPlaces &&
         (part->gpus >> gpu.index & 1) != 0;
}

// The times within the interval for which the GPU is reserved, ascending: reservations of a GPU
// have no moment in common.
std::vector<model::Occurrence> reserved_times(const RestingGpu& gpu,
                                              const ReservationMap& reservations,
                                              base::Instant until) {
  std::vector<model::Occurrence> times;
  const base::Instant since = gpu.clock.since;
  for (const auto& [name, reservation] : reservations) {
    if (!is_in_reservation(reservation, gpu)) continue;
    auto next = model::occurrence_between(reservation, since, until);
    while (next) {
      times.push_back({std::max(next->begin, since), std::min(next->end, until)});
      next = model::occurrence_between(reservation, next->end, until);
    }
  }
  std::ranges::sort(times, {}, &model::Occurrence::begin);
  return times;
}

class RestWriter {
 public:
  RestWriter(const RestingGpu& gpu, const model::PriceBook& prices, std::vector<LedgerLine>& lines)
      : gpu_(gpu), prices_(prices), lines_(lines) {}

  void put(RestKind kind, base::Instant from, base::Instant to) {
    if (model::millis_of(from) >= model::millis_of(to)) return;
    const auto spans = prices_.over(gpu_.type, gpu_.capacity, gpu_.node_name, from, to);
    for (const model::PriceSpan& span : spans) {
      put_line(kind, model::millis_of(span.from), model::millis_of(span.to),
               span.entry == nullptr ? 0 : span.entry->id);
    }
  }

 private:
  void put_line(RestKind kind, model::Millis from, model::Millis to, std::uint32_t price) {
    if (from == to) return;
    LedgerLine& line = lines_.emplace_back();
    line.kind = model::LedgerKind::kRest;
    line.node = gpu_.node_name;
    line.gpu_uuid = gpu_.uuid;
    line.gpu_type = gpu_.type;
    line.capacity = gpu_.capacity;
    line.share = gpu_.clock.rest;
    line.price = price;
    line.from = from;
    line.started = to;
    line.ended = to;
    line.to = to;
    line.rest = kind;
  }

  const RestingGpu& gpu_;
  const model::PriceBook& prices_;
  std::vector<LedgerLine>& lines_;
};

}  // namespace

RestingGpu resting_gpu(const model::Node& node, std::uint32_t index) {
  const model::Gpu& gpu = node.gpus.at(index);
  return {node.id, node.name, node.capacity, index, gpu.info.uuid, gpu.info.type, gpu.clock};
}

void append_rest_lines(const RestingGpu& gpu, const ReservationMap& reservations,
                       const model::PriceBook& prices, base::Instant until,
                       std::vector<LedgerLine>& lines) {
  const model::GpuClock& clock = gpu.clock;
  if (!clock.since.is_set() || clock.rest == base::GpuShare()) return;
  RestWriter writer(gpu, prices, lines);
  base::Instant from = clock.since;
  if (clock.kind == RestKind::kIdle && !reservations.empty()) {
    for (const model::Occurrence& reserved : reserved_times(gpu, reservations, until)) {
      writer.put(RestKind::kIdle, from, reserved.begin);
      writer.put(RestKind::kReserved, reserved.begin, reserved.end);
      from = reserved.end;
    }
  }
  writer.put(clock.kind, from, until);
}

}  // namespace gpu_platform::accounting
