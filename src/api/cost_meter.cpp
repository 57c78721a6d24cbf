#include "api/cost_meter.h"

namespace gpu_platform::api {

// A team that once is among the others stays there, or its sums would fall.
std::string CostMeter::team_named(const std::string& team) {
  if (team.empty() || teams_.contains(team)) return team;
  if (teams_.size() >= kMaxCostTeams) return "(other)";
  teams_.insert(team);
  return team;
}

base::Result<CostSums> CostMeter::count(model::Millis now, const model::PriceBook& prices,
                                        const VisitLines& visit) {
  const std::lock_guard lock(mutex_);
  if (now <= upto_) return sums_;
  const accounting::Span span{upto_, now};
  CostSums more;
  TRY(visit({span.from, span.to, {}}, [&](const model::LedgerLine& line) -> base::Status {
    if (line.kind != model::LedgerKind::kCorrection) {
      accounting::add_cut(line, span, prices,
                          more[{team_named(line.team), line.gpu_type, line.capacity}]);
    }
    return {};
  }));
  for (const auto& [key, figures] : more) sums_[key] += figures;
  upto_ = now;
  return sums_;
}

}  // namespace gpu_platform::api
