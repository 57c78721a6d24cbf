#include "api/job_cost.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "accounting/amount_text.h"
#include "accounting/live_lines.h"
#include "accounting/usage_sum.h"
#include "api/usage_answer.h"
#include "model/job_spec.h"
#include "os/clock.h"
#include "telemetry/use_summary.h"

namespace gpu_platform::api {

namespace {

constexpr double kMillijoulesOfKwh = 3.6e9;

struct AttemptBill {
  accounting::UsageFigures figures;
  model::NotBilled not_billed = model::NotBilled::kBilled;
  std::string gpu_type;  // of the first line
  bool has_one_type = true;

  void add(const model::LedgerLine& line, const model::PriceBook& prices) {
    if (figures.lines == 0) gpu_type = line.gpu_type;
    has_one_type = has_one_type && line.gpu_type == gpu_type;
    figures += accounting::figures_of(line, prices);
    not_billed = line.not_billed;
  }
};
using AttemptBills = std::map<std::uint32_t, AttemptBill>;  // by number

bool is_going_on(const model::Attempt& attempt) {
  return !attempt.released_at.is_set();
}

// The attempts' lines of the ledger, and those of attempts that go on as they are now.
base::Result<AttemptBills> bills_of(const CoreAccess& core, const controller::Snapshot& snapshot,
                                    const model::Job& job) {
  const base::Instant now = std::max(os::wall_now(), snapshot.at);
  const model::PriceBook& prices = *snapshot.prices;
  AttemptBills bills;
  const store::LedgerQuery query{.from = model::millis_of(job.attempts.front().requested_at),
                                 .to = model::millis_of(now) + 1,
                                 .user = job.spec->user};
  TRY(core.ledger->visit(query, [&](const model::LedgerLine& line) -> base::Status {
    if (line.kind != model::LedgerKind::kHeld || line.attempt.job != job.id) return {};
    const auto attempt =
        std::ranges::find(job.attempts, line.attempt.attempt, &model::Attempt::number);
    // Released just now: it goes on as far as this job says.
    if (attempt == job.attempts.end() || is_going_on(*attempt)) return {};
    bills[line.attempt.attempt].add(line, prices);
    return {};
  }));
  std::vector<model::LedgerLine> lines;
  accounting::append_live_lines({snapshot.nodes, prices, *snapshot.policy}, job, now, lines);
  for (const model::LedgerLine& line : lines) bills[line.attempt.attempt].add(line, prices);
  return bills;
}

double used_hours(const accounting::UsageFigures& figures) {
  return gpu_hours_of(figures.billed().time + figures.not_billed().time);
}

std::string money_of(base::MicroUsd amount) {
  return accounting::six_decimals(amount.value());
}

// To the nearest millionth.
base::MicroUsd cost_of_energy(std::int64_t millijoules, base::MicroUsd per_kwh) {
  constexpr __int128 kMillijoules = 3'600'000'000;
  const __int128 cost = static_cast<__int128>(millijoules) * per_kwh.value();
  return base::MicroUsd(static_cast<std::int64_t>((cost + kMillijoules / 2) / kMillijoules));
}

void put_energy(const telemetry::UseSource* uses, const model::Job& job,
                const model::EnergyFactors& factors, v1::JobCost& out) {
  if (uses == nullptr) return;
  std::vector<telemetry::UseSummary> summaries;
  for (const model::Attempt& attempt : job.attempts) {
    if (auto summary = uses->get({job.id, attempt.number}))
      summaries.push_back(*std::move(summary));
  }
  const telemetry::UseTotals totals = telemetry::totals_of(summaries);
  if (!totals.energy) return;
  const double kwh = static_cast<double>(totals.energy->millijoules) / kMillijoulesOfKwh;
  out.set_energy_kwh(kwh);
  if (factors.per_kwh != base::MicroUsd()) {
    out.set_energy_cost(money_of(cost_of_energy(totals.energy->millijoules, factors.per_kwh)));
  }
  if (factors.co2_grams_per_kwh != 0) out.set_co2_grams(kwh * factors.co2_grams_per_kwh);
}

void put_bills(const AttemptBills& bills, v1::JobCost& out) {
  AttemptBill all;
  accounting::Rounder rounder;
  bool has_one_type = true;
  for (const auto& [number, bill] : bills) {
    v1::AttemptCost& row = *out.add_attempts();
    row.set_attempt(number);
    row.set_cost(money_of(rounder.next(bill.figures.bill())));
    row.set_gpu_hours(used_hours(bill.figures));
    if (bill.not_billed != model::NotBilled::kBilled) {
      row.set_not_billed(std::string(to_string(bill.not_billed)));
    }
    if (all.figures.lines == 0) all.gpu_type = bill.gpu_type;
    has_one_type = has_one_type && bill.has_one_type && bill.gpu_type == all.gpu_type;
    all.figures += bill.figures;
  }
  out.set_cost(money_of(all.figures.bill().rounded()));
  out.set_gpu_hours(used_hours(all.figures));
  out.set_unpriced_gpu_hours(
      gpu_hours_of(all.figures.billed().unpriced + all.figures.not_billed().unpriced));
  if (has_one_type) out.set_gpu_type(all.gpu_type);
}

}  // namespace

void add_cost(const CoreAccess& core, const controller::Snapshot& snapshot, const model::Job& job,
              v1::Job& out) {
  const bool has_run = std::ranges::any_of(
      job.attempts, [](const model::Attempt& attempt) { return attempt.started_at.is_set(); });
  if (core.ledger == nullptr || !has_run) return;
  // A job is shown, too, where its ledger cannot be read.
  const auto bills = bills_of(core, snapshot, job);
  if (!bills) return;
  v1::JobCost& cost = *out.mutable_cost();
  cost.set_currency(snapshot.policy->billing->currency);
  put_bills(*bills, cost);
  cost.set_running(std::ranges::any_of(job.attempts, is_going_on));
  put_energy(core.uses, job, snapshot.policy->billing->energy, cost);
}

}  // namespace gpu_platform::api
