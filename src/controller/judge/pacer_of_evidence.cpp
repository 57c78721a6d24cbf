#include "controller/judge/pacer_of_evidence.h"

#include <algorithm>
#include <utility>

#include "health/verdict.h"

namespace gpu_platform::controller {

base::Instant PacerOfEvidence::turn_at(const Place& place) {
  const base::Duration all_but_one = kTurnEvery * (kTurns - 1);
  return place.full_at + (base::Duration() - all_but_one);
}

bool PacerOfEvidence::take_turn(model::GpuRef at, base::Instant now) {
  Place& place = places_[at];
  if (place.full_at.is_set() && turn_at(place) > now) return false;
  place.full_at = std::max(place.full_at, now) + kTurnEvery;
  return true;
}

void PacerOfEvidence::put_off(model::GpuRef at, model::Evidence piece) {
  health::keep(places_[at].waiting, std::move(piece));
  waiting_.insert(at);
}

const std::vector<model::Evidence>& PacerOfEvidence::put_off_of(model::GpuRef at) const {
  static const std::vector<model::Evidence> kNone;
  const auto place = places_.find(at);
  return place == places_.end() ? kNone : place->second.waiting;
}

std::vector<model::Evidence> PacerOfEvidence::take_put_off(model::GpuRef at) {
  const auto place = places_.find(at);
  if (place == places_.end()) return {};
  waiting_.erase(at);
  return std::exchange(place->second.waiting, {});
}

std::optional<PacerOfEvidence::Due> PacerOfEvidence::next(base::Instant now) {
  for (const model::GpuRef at : waiting_) {
    if (!take_turn(at, now)) continue;
    Place& place = places_[at];
    Due due{at, std::move(place.waiting.front())};
    place.waiting.erase(place.waiting.begin());
    if (place.waiting.empty()) waiting_.erase(at);
    return due;
  }
  return std::nullopt;
}

std::optional<base::Instant> PacerOfEvidence::next_at() const {
  std::optional<base::Instant> next;
  for (const model::GpuRef at : waiting_) {
    const base::Instant turn = turn_at(places_.at(at));
    next = std::min(next.value_or(turn), turn);
  }
  return next;
}

}  // namespace gpu_platform::controller
