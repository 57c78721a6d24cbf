#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "api/cost_meter.h"
#include "api/ledger_view.h"
#include "api/metrics/gpu_labels.h"
#include "api/metrics/scrape.h"
#include "model/budget.h"
#include "model/gpu_clock.h"
#include "model/policy.h"
#include "model/price.h"
#include "os/clock.h"
#include "views/budgets.h"

// What GPUs cost, what became of their time, and what was spent of budgets.

namespace gpu_platform::api {

namespace {

using accounting::ExactCost;
using accounting::GpuTime;
using accounting::UsageFigures;

double in_currency(ExactCost cost) {
  return static_cast<double>(cost.rounded().value()) / 1e6;
}

double in_gpu_seconds(__int128 share_milliseconds) {
  return static_cast<double>(share_milliseconds) /
         (static_cast<double>(base::kWholeGpu.value()) * 1000);
}

// ---- prices

using Offer = std::pair<std::string, model::CapacityClass>;  // a type of GPU, and a class of nodes

struct OfferPrices {
  std::uint64_t gpus_without = 0;
  base::MicroUsd highest;  // of those that have one
  bool has_price = false;
};

std::map<Offer, OfferPrices> prices_of(const controller::Snapshot& snapshot, base::Instant now) {
  std::map<Offer, OfferPrices> offers;
  for_each_gpu(snapshot, [&](const model::Node& node, std::uint32_t, const model::Gpu& gpu) {
    OfferPrices& prices = offers[{gpu.info.type, node.capacity}];
    const auto* entry = snapshot.prices->at(gpu.info.type, node.capacity, node.name, now);
    if (entry == nullptr) {
      ++prices.gpus_without;
      return;
    }
    prices.has_price = true;
    prices.highest = std::max(prices.highest, entry->price.per_hour);
  });
  return offers;
}

void add_prices(const controller::Snapshot& snapshot, base::Instant now, MetricPage& page) {
  MetricFamily& info =
      page.gauge("gpu_platform_currency_info", "The currency of all amounts; always 1.");
  info.add({{"currency", snapshot.policy->billing->currency}}, 1);
  MetricFamily& price = page.gauge("gpu_platform_gpu_hour_price",
                                   "Price of a GPU-hour by the list, of the dearest such GPU.");
  MetricFamily& without =
      page.gauge("gpu_platform_gpus_without_price", "GPUs that the price list has no price of.");
  for (const auto& [offer, prices] : prices_of(snapshot, now)) {
    const MetricLabels labels{{"type", offer.first}, {"capacity", label_of(offer.second)}};
    if (prices.has_price) price.add(labels, static_cast<double>(prices.highest.value()) / 1e6);
    without.add(labels, static_cast<double>(prices.gpus_without));
  }
}

// ---- what became of the time of GPUs

// The kinds of time that a GPU has, with their labels. Together they are all of it.
constexpr std::size_t kOwnUses = 4;
using TimeByUse = std::array<std::pair<std::string_view, GpuTime>, kOwnUses + model::kRestKinds>;

TimeByUse time_by_use(const UsageFigures& figures) {
  TimeByUse uses;
  uses[0] = {"billed", figures.billed()};
  uses[1] = {"not_billed", figures.not_billed()};
  uses[2] = {"starting", figures.starting};
  uses[3] = {"cleaning", figures.cleaning};
  for (std::size_t i = 0; i < model::kRestKinds; ++i) {
    const auto kind = static_cast<model::RestKind>(i);
    uses[kOwnUses + i] = {to_string(kind), figures.rest_of(kind)};
  }
  return uses;
}

void add_gpu_time(const CostSums& sums, MetricPage& page) {
  std::map<Offer, UsageFigures> offers;
  for (const auto& [key, figures] : sums) {
    if (!key.gpu_type.empty()) offers[{key.gpu_type, key.capacity}] += figures;
  }
  MetricFamily& seconds = page.counter("gpu_platform_gpu_seconds_total",
                                       "GPU-time by what became of it; its uses add up to all.");
  MetricFamily& costs = page.counter("gpu_platform_gpu_time_cost_total",
                                     "What that GPU-time costs by the price list.");
  for (const auto& [offer, figures] : offers) {
    const MetricLabels labels{{"type", offer.first}, {"capacity", label_of(offer.second)}};
    for (const auto& [use, time] : time_by_use(figures)) {
      const MetricLabels with_use = labels.with("use", use);
      seconds.add(with_use, in_gpu_seconds(time.time));
      costs.add(with_use, in_currency(time.list));
    }
  }
}

bool has_use(const UsageFigures& figures) {
  return figures.billed().time != 0 || figures.not_billed().time != 0 || figures.cpu.core_ms != 0;
}

void add_team_costs(const CostSums& sums, MetricPage& page) {
  MetricFamily& costs = page.counter("gpu_platform_cost_total",
                                     "What was billed to teams; type \"(none)\": jobs without "
                                     "GPUs.");
  for (const auto& [key, figures] : sums) {
    if (!has_use(figures)) continue;
    costs.add({{"team", key.team.empty() ? "(none)" : key.team},
               {"type", key.gpu_type.empty() ? "(none)" : key.gpu_type},
               {"capacity", label_of(key.capacity)}},
              in_currency(figures.bill()));
  }
}

void add_costs(const Scrape& scrape, base::Instant now, MetricPage& page) {
  if (scrape.core.ledger == nullptr) return;
  const LedgerView view(scrape.reader, model::root_caller(), now);
  const auto sums =
      scrape.costs.count(model::millis_of(view.now()), view.prices(),
                         [&](const store::LedgerQuery& query, const store::Ledger::Visit& visit) {
                           return view.visit(query, visit);
                         });
  page.gauge("gpu_platform_ledger_up", "Whether the ledger can be read (0 or 1).")
      .add(sums ? 1 : 0);
  if (!sums) return;
  add_team_costs(*sums, page);
  add_gpu_time(*sums, page);
}

// ---- budgets

void add_budgets(const controller::Snapshot& snapshot, base::Instant now, MetricPage& page) {
  MetricFamily& amounts =
      page.gauge("gpu_platform_budget_amount", "What may be spent in a budget's period.");
  MetricFamily& spent =
      page.gauge("gpu_platform_budget_spent", "What was spent in the present period, up to now.");
  for (const views::BudgetFigures& each : views::budget_figures(snapshot, now)) {
    const model::Budget& budget = each.state->budget;
    const MetricLabels labels{{"holder", to_string(budget.key.holder)},
                              {"name", budget.key.name},
                              {"period", to_string(budget.period)}};
    amounts.add(labels, static_cast<double>(budget.amount.value()) / 1e6);
    spent.add(labels, in_currency(each.spent));
  }
}

// The money of all jobs is for those who may see all jobs.
bool sees_money(const Scrape& scrape) {
  return scrape.core.metrics.jobs == config::MetricJobs::kAll ||
         scrape.caller.reach == model::Reach::kAll ||
         scrape.reader.view_of(scrape.caller).sees_all_jobs();
}

}  // namespace

void add_money(const Scrape& scrape, MetricPage& page) {
  const base::Instant now = std::max(os::wall_now(), scrape.snapshot->at);
  add_prices(*scrape.snapshot, now, page);
  if (!sees_money(scrape)) return;
  add_costs(scrape, now, page);
  add_budgets(*scrape.snapshot, now, page);
}

}  // namespace gpu_platform::api
