#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "accounting/balance.h"
#include "accounting/live_lines.h"
#include "accounting/monthly.h"
#include "accounting/usage_sum.h"
#include "base/month.h"
#include "base/testing/rounds.h"
#include "controller/budget_use.h"
#include "controller/ledger_site_fixture.h"

// Whatever happens to a site, its books balance to the last unit, its bills, its reports and what
// counts against budgets are those of a recount of the events, and the events make the same lines
// again.

namespace gpu_platform::controller {
namespace {

using accounting::ExactCost;
using accounting::UsageFigures;
using testing::LedgerSite;
using testing::Recount;

constexpr std::uint64_t kLedgerHistories = 10'000;
constexpr std::uint64_t kLedgerParts = 4;  // of the histories, so that they run side by side

// How often something was there that is to be counted.
struct SeenInBooks {
  std::map<model::NotBilled, std::uint64_t> used;
  std::map<model::RestKind, std::uint64_t> rests;
  std::uint64_t parts = 0;  // of GPUs
  std::uint64_t cuts = 0;   // where prices change
  std::uint64_t unpriced = 0;
  std::uint64_t without_gpus = 0;
  std::uint64_t discounts = 0;
  std::uint64_t corrections = 0;

  void add(const model::LedgerLine& line) {
    corrections += line.kind == model::LedgerKind::kCorrection ? 1 : 0;
    if (line.kind == model::LedgerKind::kRest) ++rests[line.rest];
    if (line.kind != model::LedgerKind::kHeld) return;
    if (line.started < line.ended || line.not_billed == model::NotBilled::kNeverRan) {
      ++used[line.not_billed];
    }
    cuts += line.segment > 0 ? 1 : 0;
    discounts += line.discount > 0 ? 1 : 0;
    if (line.gpu_uuid.empty()) {
      ++without_gpus;
    } else {
      parts += line.share < base::kWholeGpu ? 1 : 0;
      unpriced += line.price == 0 ? 1 : 0;
    }
  }
};

std::string digits_of(__int128 number) {
  const bool is_negative = number < 0;
  std::string digits;
  do {
    const auto digit = static_cast<int>(number % 10);
    digits.insert(digits.begin(), static_cast<char>('0' + (digit < 0 ? -digit : digit)));
    number /= 10;
  } while (number != 0);
  return (is_negative ? "-" : "") + digits;
}

std::string digits_of(ExactCost cost) {
  return digits_of(cost.units());
}

std::string digits_of(const accounting::GpuTime& time) {
  return fmt::format("{} ({} without a price) for {}", digits_of(time.time),
                     digits_of(time.unpriced), digits_of(time.list));
}

// To the nearest millionth, halves away from zero.
std::int64_t micros_of(ExactCost cost) {
  constexpr __int128 kMicro = static_cast<__int128>(7000) * 3'600'000 * 10'000 * 1024;
  const __int128 doubled = cost.units() * 2;
  const __int128 half = doubled < 0 ? -kMicro : kMicro;
  return static_cast<std::int64_t>((doubled + half) / (2 * kMicro));
}

// A history that is over, with the lines of what goes on.
class CheckedBooks {
 public:
  explicit CheckedBooks(const LedgerSite& site)
      : site_(site),
        all_{model::millis_of(site.begin()) - 1, model::millis_of(site.now()) + 1},
        lines_(site.lines) {
    const State& state = site.state();
    const accounting::LiveView view{
        state.jobs, {state.nodes, prices(), *state.policy}, state.books->reservations.all()};
    const std::vector<model::LedgerLine> live = accounting::live_lines(view, site.now());
    lines_.insert(lines_.end(), live.begin(), live.end());
    for (model::Millis from = all_.from; from < all_.to;) {
      const base::Month month = base::month_of(base::Instant(from * 1'000'000));
      const model::Millis to = std::min(all_.to, model::millis_of(base::end_of(month)));
      months_.emplace_back(from, recount().held({from, to}));
      from = to;
    }
  }

  void check() {
    check_balance();
    check_usage();
    check_month();
    check_jobs();
    check_budgets();
  }

 private:
  const model::PriceBook& prices() const { return *site_.state().prices; }
  const Recount& recount() const { return site_.recount(); }

  void check_balance() {
    accounting::Balance balance(all_, prices());
    for (const model::LedgerLine& line : lines_) balance.add(line);
    const accounting::BalanceReport report = balance.report();
    EXPECT_TRUE(report.balances()) << report.differences.named.front();
    EXPECT_EQ(digits_of(report.wall), digits_of(recount().wall()));
    ExactCost fleet;
    for (const auto& [from, held] : months_) {
      for (const auto& [owner, figures] : held) fleet += figures.all().list;
    }
    for (std::size_t kind = 0; kind < model::kRestKinds; ++kind) {
      const accounting::GpuTime& rest = recount().rests()[kind];
      fleet += rest.list;
      const auto rest_kind = static_cast<model::RestKind>(kind);
      EXPECT_EQ(digits_of(report.figures.rest_of(rest_kind)), digits_of(rest))
          << to_string(rest_kind);
    }
    EXPECT_EQ(digits_of(report.fleet), digits_of(fleet));
  }

  // By user, team and type, in each month.
  void check_usage() {
    accounting::UsageQuery query{.from = all_.from, .to = all_.to};
    query.by = {{accounting::UsageField::kUser, {}},
                {accounting::UsageField::kTeam, {}},
                {accounting::UsageField::kType, {}}};
    query.step = accounting::UsageStep::kMonth;
    accounting::UsageSum sum(query, prices());
    for (const model::LedgerLine& line : lines_) sum.add(line);
    std::size_t found = 0;
    const std::vector<accounting::UsageGroup> groups = sum.groups();
    for (const auto& [from, held] : months_) {
      for (const auto& [owner, figures] : held) expect_group(groups, owner, from, figures);
      found += held.size();
    }
    EXPECT_EQ(groups.size(), found);
  }

  static void expect_group(const std::vector<accounting::UsageGroup>& groups,
                           const Recount::Owner& owner, model::Millis step,
                           const UsageFigures& expected) {
    const std::vector<std::string> keys = {std::get<0>(owner), std::get<1>(owner),
                                           std::get<2>(owner)};
    const std::string name = fmt::format("{}, {}, '{}' from {}", keys[0], keys[1], keys[2], step);
    for (const accounting::UsageGroup& group : groups) {
      if (group.keys != keys || group.step != step) continue;
      UsageFigures figures = group.figures;
      figures.lines = 0;
      EXPECT_TRUE(figures == expected)
          << name << ": billed " << digits_of(figures.billed()) << ", bill "
          << digits_of(figures.bill()) << " should be " << digits_of(expected.billed()) << ", bill "
          << digits_of(expected.bill());
      return;
    }
    ADD_FAILURE() << name << " is missing";
  }

  void check_month() {
    const base::Month month = base::month_of(site_.now());
    accounting::MonthlySum sum({.month = month, .currency = "USD"}, prices());
    for (const model::LedgerLine& line : lines_) sum.add(line);
    std::map<std::string, ExactCost> teams;
    for (const auto& [owner, figures] : months_.back().second) {
      teams[std::get<1>(owner)] += figures.bill();
    }
    const accounting::MonthlyReport report = sum.report();
    std::int64_t total = 0;
    for (const auto& [team, bill] : teams) total += micros_of(bill);
    EXPECT_EQ(report.total.value(), total);
    for (const accounting::TeamBill& bill : report.teams) {
      EXPECT_EQ(bill.total.value(), micros_of(teams[bill.team])) << bill.team;
    }
    EXPECT_TRUE(report.balance.balances());
  }

  // What a job shows as its cost is the sum of its lines.
  void check_jobs() {
    std::map<model::JobId, ExactCost> shown;
    for (const model::LedgerLine& line : lines_) {
      if (line.kind != model::LedgerKind::kHeld) continue;
      shown[line.attempt.job] += accounting::figures_of(line, prices()).bill();
    }
    for (const auto& [job, bill] : recount().bills_of_jobs(all_)) {
      EXPECT_EQ(digits_of(shown[job]), digits_of(bill)) << "job " << job.value;
    }
  }

  void check_budgets() {
    const State& state = site_.state();
    for (const auto& [key, budget] : *state.books->budgets) {
      EXPECT_EQ(digits_of(spent_of(state, budget, site_.now())),
                digits_of(recount().spent(budget, *state.policy->organisation)))
          << to_string(key.holder) << " " << key.name;
    }
    EXPECT_EQ(wrong_budgets(state), std::vector<std::string>());
  }

  const LedgerSite& site_;
  const accounting::Span all_;
  std::vector<model::LedgerLine> lines_;
  std::vector<std::pair<model::Millis, Recount::Held>> months_;  // by their begins, within all_
};

void expect_much_seen(const SeenInBooks& seen) {
  for (const model::NotBilled why :
       {model::NotBilled::kBilled, model::NotBilled::kNeverRan, model::NotBilled::kHardware,
        model::NotBilled::kPlatform, model::NotBilled::kPreempted}) {
    EXPECT_TRUE(seen.used.contains(why)) << to_string(why);
  }
  for (const model::RestKind kind :
       {model::RestKind::kIdle, model::RestKind::kReserved, model::RestKind::kOthers,
        model::RestKind::kDraining, model::RestKind::kOffline}) {
    EXPECT_TRUE(seen.rests.contains(kind)) << to_string(kind);
  }
  EXPECT_GT(seen.parts, 0U);
  EXPECT_GT(seen.cuts, 0U);
  EXPECT_GT(seen.unpriced, 0U);
  EXPECT_GT(seen.without_gpus, 0U);
  EXPECT_GT(seen.discounts, 0U);
  EXPECT_GT(seen.corrections, 0U);
}

class RandomBooks : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomBooks, BalanceAndEqualARecountOfTheEvents) {
  const std::uint64_t rounds = base::rounds(kLedgerHistories / kLedgerParts);
  SeenInBooks seen;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const std::uint64_t seed = i * kLedgerParts + GetParam();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    LedgerSite site(seed);
    site.run();
    ASSERT_EQ(site.difference, "");
    CheckedBooks(site).check();
    if (HasFailure()) return;
    for (const model::LedgerLine& line : site.lines) seen.add(line);
  }
  if (base::every_how_many() == 1) expect_much_seen(seen);
}

INSTANTIATE_TEST_SUITE_P(All, RandomBooks, ::testing::Range<std::uint64_t>(0, kLedgerParts));

}  // namespace
}  // namespace gpu_platform::controller
