#include "views/request_fits.h"

#include <algorithm>
#include <utility>

#include "model/job_spec.h"
#include "scheduling/gang/place_gang.h"
#include "scheduling/placement/place.h"
#include "scheduling/trial.h"

namespace gpu_platform::views {

const RequestFit& RequestFits::of(const model::JobSpec& spec) {
  base::Duration runs_for;
  if (snapshot().reservations != nullptr) {
    runs_for = model::longest_limit(spec.request, spec.time_limit) + snapshot().policy->stop_grace;
  }
  for (const auto& known : known_) {
    if (known.request == spec.request && known.runs_for == runs_for) return known;
  }
  known_.push_back(find(spec.request, runs_for));
  return known_.back();
}

void RequestFits::visit(const model::Node& node, Others others,
                        scheduling::ShortageCounter& counter, RequestFit& fit) const {
  const scheduling::Reservations* reservations = snapshot().reservations.get();
  const auto reserved = reservations == nullptr
                            ? std::nullopt
                            : reservations->withheld_on(fit.request, node.id, others);
  if (!reserved) return counter.visit(node);
  if (!reserved->is_by_others) return counter.visit(node, reserved->withheld);
  if (!counter.visit_reserved(node, reserved->withheld)) return;
  std::size_t first = 0;  // beside which, and those before it, the node does not do
  for (; first + 1 < others.size(); ++first) {
    const auto with = reservations->withheld_on(fit.request, node.id, others.first(first + 1));
    if (with && !counter.fits_on(node, with->withheld)) break;
  }
  if (!fit.in_the_way || others[first].when.begin < fit.in_the_way->when.begin) {
    fit.in_the_way = others[first];
  }
}

RequestFit RequestFits::find(const model::ResourceRequest& request, base::Duration runs_for) {
  RequestFit fit{.request = request, .runs_for = runs_for};
  std::vector<scheduling::Reserved> others;
  if (snapshot().reservations != nullptr) {
    others =
        snapshot().reservations->of_others(request, {snapshot().at, snapshot().at + fit.runs_for});
  }
  const auto parts = [&](const model::ResourceRequest& part, std::uint32_t count) {
    scheduling::ShortageCounter counter(part, snapshot().policy->sharing);
    snapshot().nodes.for_each(
        [&](std::uint64_t, const model::Node& node) { visit(node, others, counter, fit); });
    fit.counts = counter.counts();
    fit.parts = count;
    fit.gpus = part.gpus;
    fit.could_hold = counter.nodes_up_that_could_hold() >= count;
    return !fit.could_hold;
  };
  // Nodes outside the job's own reservation are none that it may use, and not out of service.
  const model::Reservation* own = snapshot().reservations == nullptr
                                      ? nullptr
                                      : snapshot().reservations->find(request.reservation);
  const auto inside = own == nullptr ? std::nullopt : scheduling::request_inside(*own, request);
  // Among several ways to divide the request, this is the one on the fewest nodes that these could
  // hold.
  scheduling::for_each_split(inside ? *inside : request, snapshot().nodes.size(), parts);
  const auto fits =
      std::ranges::find(fit.counts, model::Shortage::kFits, &model::WaitCount::shortage);
  fit.fits = fits != fit.counts.end() && fits->nodes >= fit.parts;
  if (model::is_gang(request)) place_gang(others, fit);
  return fit;
}

// Counts alone do not say it: its parts must be of one type, and together.
void RequestFits::place_gang(Others others, RequestFit& fit) {
  fit.in_the_way.reset();
  fit.fits = gang_fits(fit.request, others);
  if (fit.fits || others.empty() || !gang_fits(fit.request, {})) return;
  std::size_t first = 0;
  while (first + 1 < others.size() && gang_fits(fit.request, others.first(first + 1))) ++first;
  fit.in_the_way = others[first];
}

bool RequestFits::gang_fits(const model::ResourceRequest& wanted, Others others) {
  scheduling::Trial trial(books_->cluster());
  model::ResourceRequest request = wanted;
  if (snapshot().reservations != nullptr) {
    if (const model::Reservation* own = snapshot().reservations->find(request.reservation)) {
      auto inside = scheduling::request_inside(*own, request);
      if (!inside) return false;
      request = *std::move(inside);
    }
    snapshot().reservations->withhold_from(trial, request, others);
  }
  return scheduling::place(trial, request).has_value();
}

}  // namespace gpu_platform::views
