#include "api/advice_calls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accounting/advice.h"
#include "accounting/forecast.h"
#include "accounting/savings.h"
#include "accounting/usage_query.h"
#include "api/advice_answer.h"
#include "api/call_context.h"
#include "api/convert/job.h"
#include "api/ledger_view.h"
#include "api/usage_question.h"
#include "model/policy.h"
#include "os/clock.h"
#include "telemetry/kpi_runs.h"
#include "telemetry/use_summary.h"

namespace gpu_platform::api {

namespace {

constexpr std::size_t kMaxFamiliesShown = 50;
// Each look reads a summary, which takes some 50 µs.
constexpr std::size_t kMaxAttemptLooks = 10'000;

// ---- which lines count

// The team of a request with those below it, or all lines.
class LineChoice {
 public:
  template <class Request>
  LineChoice(const Request& request, const LedgerView& view) {
    if (request.has_team()) filter_.teams = teams_of(request.team(), view);
  }

  bool has_team() const { return !filter_.teams.empty(); }
  bool has(const model::LedgerLine& line) const { return accounting::is_wanted(filter_, line); }

 private:
  accounting::UsageFilter filter_;
};

accounting::Span span_of(const store::LedgerQuery& lines) {
  return {lines.from, lines.to};
}

// Adds the lines that count to a sum.
template <class Sum>
base::Status add_lines(const LedgerView& view, const store::LedgerQuery& lines,
                       const LineChoice& choice, Sum& sum) {
  return view.visit(lines, [&](const model::LedgerLine& line) -> base::Status {
    if (choice.has(line)) sum.add(line);
    return {};
  });
}

// ---- what is asked about each line

struct AdviceSums {
  AdviceSums(accounting::Span span, const model::PriceBook& prices)
      : families(span, prices), held(span, prices), reserved(span) {}

  void add(const model::LedgerLine& line) {
    families.add(line);
    held.add(line);
    reserved.add(line);
  }

  accounting::FamilySum families;
  accounting::HeldSum held;
  accounting::ReservedSum reserved;
};

// ---- types and prices of the cluster

// One GPU of each type, with the memory of the smallest one.
struct TypeInCluster {
  base::Bytes memory;
  std::string node;  // prices may be those of nodes
};
using TypesInCluster = std::map<std::string, TypeInCluster>;

TypesInCluster types_in(const controller::Snapshot& snapshot) {
  TypesInCluster types;
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (const model::Gpu& gpu : node.gpus) {
      if (!gpu.is_reported || gpu.info.memory <= base::Bytes()) continue;
      const auto [type, is_new] =
          types.try_emplace(gpu.info.type, TypeInCluster{gpu.info.memory, node.name});
      if (!is_new) type->second.memory = std::min(type->second.memory, gpu.info.memory);
    }
  });
  return types;
}

std::optional<base::MicroUsd> price_now(const LedgerView& view, const std::string& gpu_type,
                                        const std::string& node) {
  const model::PriceEntry* const entry =
      view.prices().at(gpu_type, model::CapacityClass::kOnDemand, node, view.now());
  return entry == nullptr ? std::nullopt : std::optional(entry->price.per_hour);
}

std::vector<accounting::GpuOffer> offers_in(const LedgerView& view) {
  const auto& weights = view.snapshot().policy->fair_share.gpu_weights;
  std::vector<accounting::GpuOffer> offers;
  for (const auto& [type, place] : types_in(view.snapshot())) {
    offers.push_back({type, place.memory, model::gpu_weight_of(type, weights),
                      price_now(view, type, place.node)});
  }
  return offers;
}

// A price for all classes is none of reserved capacity: it says nothing of what a reservation
// saves.
std::map<std::string, accounting::ReservedOffer> reserved_offers(
    const LedgerView& view, const std::vector<std::string>& gpu_types) {
  std::map<std::string, accounting::ReservedOffer> offers;
  for (const std::string& type : gpu_types) {
    const auto on_demand = price_now(view, type, {});
    const model::PriceEntry* const reserved =
        view.prices().at(type, model::CapacityClass::kReserved, {}, view.now());
    const bool is_known = on_demand && *on_demand > base::MicroUsd() && reserved != nullptr &&
                          reserved->price.capacity.has_value();
    if (is_known) offers[type] = {*on_demand, reserved->price.per_hour};
  }
  return offers;
}

// ---- what was read of attempts

double part_of_gpu(base::GpuShare share) {
  return static_cast<double>(share.value()) / static_cast<double>(base::kWholeGpu.value());
}

std::optional<accounting::AttemptUse> readings_of(const CoreAccess& core, model::AttemptId attempt,
                                                  base::GpuShare share) {
  if (core.uses == nullptr) return std::nullopt;
  const std::optional<telemetry::UseSummary> summary = core.uses->get(attempt);
  if (!summary) return std::nullopt;
  const telemetry::RunUse made = telemetry::run_use_of(*summary, part_of_gpu(share));
  accounting::AttemptUse use{made.measured, made.utilization, std::nullopt};
  if (const auto peak = telemetry::brief_of(*summary).peak_memory)
    use.peak_memory = base::Bytes(*peak);
  return use;
}

std::vector<FamilyFinding> findings_of(const CoreAccess& core, const LedgerView& view,
                                       const accounting::FamilySum& families) {
  const std::vector<accounting::GpuOffer> offers = offers_in(view);
  std::vector<FamilyFinding> findings;
  for (accounting::JobFamily& family : families.dearest(kMaxFamiliesShown)) {
    FamilyFinding& finding = findings.emplace_back();
    finding.family = std::move(family);
    for (const model::AttemptId attempt : finding.family.latest) {
      if (const auto use = readings_of(core, attempt, base::kWholeGpu)) finding.use.add(*use);
    }
    finding.advice = accounting::advise_type(finding.family, finding.use, offers);
  }
  return findings;
}

void put_waste(const CoreAccess& core, const accounting::HeldSum& held, v1::Advice& out) {
  const accounting::WasteRule rule{.below_percent = core.idle.below_percent,
                                   .after = base::whole_milliseconds(core.idle.after),
                                   .least_measured = telemetry::kLeastMeasured};
  accounting::TeamActivities teams;
  std::uint64_t looks = 0;
  const std::vector<accounting::HeldAttempt> attempts = held.largest_first();
  for (const accounting::HeldAttempt& attempt : attempts) {
    const bool is_looked_at = looks < kMaxAttemptLooks;
    const auto use =
        is_looked_at ? readings_of(core, attempt.attempt, attempt.share) : std::nullopt;
    if (is_looked_at) ++looks;
    const auto activity = static_cast<std::size_t>(accounting::activity_of(attempt, use, rule));
    teams[std::string(held.team_name(attempt.team))][activity].add(attempt);
  }
  put_activities(teams, out);
  out.set_idle_below_percent(rule.below_percent);
  out.set_idle_after_seconds(static_cast<double>(rule.after) / 1000);
  out.set_attempts_not_looked_at(attempts.size() - looks);
}

}  // namespace

base::Result<v1::Savings> AdviceCalls::savings(const v1::GetSavingsRequest& request,
                                               const Peer& peer) const {
  const LedgerView view(context_.reader, peer.caller, os::wall_now());
  TRY_ASSIGN(const UsageWindow window, to_window(request, view.now()));
  const store::LedgerQuery lines = window.query();
  accounting::SpotSavings savings(span_of(lines), view.prices());
  TRY(add_lines(view, lines, LineChoice(request, view), savings));
  v1::Savings out;
  to_proto(window.from, *out.mutable_since());
  to_proto(window.to, *out.mutable_until());
  out.set_currency(view.currency());
  put_savings(savings, out);
  out.set_partial(!view.sees_all_jobs());
  return out;
}

base::Result<v1::Forecast> AdviceCalls::forecast(const v1::GetForecastRequest& request,
                                                 const Peer& peer) const {
  const LedgerView view(context_.reader, peer.caller, os::wall_now());
  const model::Millis now = model::millis_of(view.now());
  accounting::ForecastSum sum(now, view.prices());
  const store::LedgerQuery lines{.from = sum.span().from, .to = sum.span().to};
  TRY(add_lines(view, lines, LineChoice(request, view), sum));
  v1::Forecast out;
  out.set_currency(view.currency());
  to_proto(sum.forecast(), now, out);
  out.set_partial(!view.sees_all_jobs());
  return out;
}

base::Result<v1::Advice> AdviceCalls::advice(const v1::GetAdviceRequest& request,
                                             const Peer& peer) const {
  const LedgerView view(context_.reader, peer.caller, os::wall_now());
  TRY_ASSIGN(const UsageWindow window, to_window(request, view.now()));
  const store::LedgerQuery lines = window.query();
  const LineChoice choice(request, view);
  AdviceSums sums(span_of(lines), view.prices());
  TRY(add_lines(view, lines, choice, sums));
  v1::Advice out;
  to_proto(window.from, *out.mutable_since());
  to_proto(window.to, *out.mutable_until());
  out.set_currency(view.currency());
  put_families(findings_of(context_.core, view, sums.families), out);
  out.set_more_families(sums.families.size() - static_cast<std::size_t>(out.families_size()));
  put_waste(context_.core, sums.held, out);
  if (view.sees_fleet() && !choice.has_team()) {
    const auto offers = reserved_offers(view, sums.reserved.gpu_types());
    put_reserved(sums.reserved.advice(offers), span_of(lines), out);
  }
  out.set_partial(!view.sees_all_jobs());
  return out;
}

}  // namespace gpu_platform::api
