#include "scheduling/pools/lending.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "model/job_spec.h"
#include "scheduling/testing/hits.h"

namespace gpu_platform::scheduling {
namespace {

using model::Organisation;
using model::QuotaHolder;

base::GpuShare whole(std::int64_t gpus) {
  return base::kWholeGpu * gpus;
}

Organisation two_teams(std::uint32_t a, std::uint32_t b) {
  return {.teams = {{"a", {}, 1, {}, {.guaranteed_gpus = a}},
                    {"b", {}, 1, {}, {.guaranteed_gpus = b}}}};
}

model::JobSpec spec_by(std::string user, std::string team) {
  model::JobSpec spec;
  spec.user = std::move(user);
  spec.team = std::move(team);
  return spec;
}

// Returns the guarantees of the only pool of a cluster of one type.
Guarantees in_one_pool(const Organisation& organisation, std::uint64_t gpus) {
  const ByPool<Guarantees> pools = guarantees_of(organisation, {{"A100-40GB", gpus}});
  return pools.empty() ? Guarantees() : pools.find("")->second;
}

TEST(Guarantees, BeyondWhatWasFoundAreTold) {
  Organisation organisation = two_teams(6, 4);
  EXPECT_TRUE(unmet_guarantees(organisation, {{"A100-40GB", 10}}).empty());
  EXPECT_EQ(unmet_guarantees(organisation, {{"A100-40GB", 8}, {"L4", 1}}),
            (std::vector<std::string>{"guaranteed_gpus add up to 10 GPUs, but 9 were found: not "
                                      "all guarantees can be met at once"}));
  organisation.teams[0].quota.gpu_types = {{.type = "L4", .guaranteed_gpus = 2}};
  const auto told = unmet_guarantees(organisation, {{"A100-40GB", 7}, {"L4", 1}});
  ASSERT_EQ(told.size(), 2U);
  EXPECT_TRUE(told[0].starts_with(
      "guaranteed_gpus add up to 8 GPUs of the types without guarantees of their own, but 7"));
  EXPECT_TRUE(told[1].starts_with("guaranteed_gpus add up to 2 GPUs of type L4, but 1"));
}

TEST(Guarantees, ThatAreScaledAreAlwaysMet) {
  Organisation organisation = two_teams(6, 4);
  organisation.allocation = model::AllocationMode::kHybrid;
  EXPECT_TRUE(unmet_guarantees(organisation, {{"A100-40GB", 1}}).empty());
}

TEST(Guarantees, AreReadAsTheModeSays) {
  Organisation organisation = two_teams(6, 2);
  organisation.teams[0].quota.borrow_limit = 3;
  organisation.teams[0].quota.lend_limit = 4;
  const QuotaSubject a{QuotaHolder::kTeam, "a"};
  Guarantees found = in_one_pool(organisation, 10);
  EXPECT_EQ(found.of[a], (Guarantee{whole(6), whole(3), whole(4)}));
  EXPECT_EQ(found.shared, whole(2));
  EXPECT_EQ(in_one_pool(organisation, 5).shared, whole(0));

  organisation.allocation = model::AllocationMode::kStatic;
  EXPECT_EQ(in_one_pool(organisation, 10).of[a], (Guarantee{whole(6), whole(0), whole(0)}));

  organisation.allocation = model::AllocationMode::kHybrid;  // 3 of 10 GPUs: 6·3/8 and 2·3/8
  found = in_one_pool(organisation, 10);
  EXPECT_EQ(found.of[a], (Guarantee{whole(2), whole(3), whole(2)}));
  EXPECT_EQ(found.shared, whole(8));
  organisation.reserved_thousandths = 1000;  // never more than was written
  EXPECT_EQ(in_one_pool(organisation, 100).of[a].gpus, whole(6));

  organisation.allocation = model::AllocationMode::kDynamic;
  EXPECT_TRUE(in_one_pool(organisation, 10).empty());
}

// Six GPUs are guaranteed to team a, four of them H100; of the A100 none is guaranteed as such.
Organisation by_type() {
  Organisation organisation = two_teams(6, 2);
  organisation.teams[0].quota.borrow_limit = 1;
  organisation.teams[0].quota.gpu_types = {{"H100", {}, 4, {}, 3}};
  organisation.of_users = {{"ann", {.gpu_types = {{"H100", {}, 1}}}}};
  return organisation;
}

TEST(Guarantees, OfTypesArePoolsOfTheirOwn) {
  const GpusByType gpus = {{"A100-40GB", 3}, {"H100-80GB", 6}, {"H100-94GB", 2}, {"T4-16GB", 4}};
  const QuotaSubject a{QuotaHolder::kTeam, "a"};
  const QuotaSubject b{QuotaHolder::kTeam, "b"};
  const QuotaSubject ann{QuotaHolder::kUser, "ann"};
  const Guarantees h100{
      .of = {{a, {whole(4), std::nullopt, whole(3)}}, {ann, {whole(1), std::nullopt, whole(1)}}},
      .shared = whole(3)};
  const Guarantees others{
      .of = {{a, {whole(2), whole(1), whole(2)}}, {b, {whole(2), std::nullopt, whole(2)}}},
      .shared = whole(3)};
  const ByPool<Guarantees> pools = guarantees_of(by_type(), gpus);
  EXPECT_EQ(pools, (ByPool<Guarantees>{{"", others}, {"H100", h100}}));
  EXPECT_EQ(*pool_of_type(pools, "H100-94GB"), "H100");
  EXPECT_EQ(*pool_of_type(pools, "T4-16GB"), "");

  // In hybrid mode each pool is scaled by itself: half of 8 are less than 5, half of 7 less than 4.
  Organisation hybrid = by_type();
  hybrid.allocation = model::AllocationMode::kHybrid;
  hybrid.reserved_thousandths = 500;
  ByPool<Guarantees> scaled = guarantees_of(hybrid, gpus);
  EXPECT_EQ(scaled["H100"].of[a].gpus, whole(3));
  EXPECT_EQ(scaled[""].of[a].gpus, whole(1));
}

TEST(Guarantees, OfTypesAloneLeaveTheOtherTypesToAll) {
  Organisation organisation = by_type();
  for (model::Team& team : organisation.teams) team.quota.guaranteed_gpus.reset();
  const ByPool<Guarantees> pools = guarantees_of(organisation, {{"H100-80GB", 8}, {"T4-16GB", 4}});
  EXPECT_EQ(pools.size(), 1U);
  EXPECT_EQ(pool_of_type(pools, "T4-16GB"), nullptr);
  EXPECT_EQ(holder_of(pools.find("H100")->second, organisation, spec_by("bob", "b")),
            QuotaSubject());
}

TEST(Guarantees, SpareWhatWasStoppedAsOftenAsItsTeamAllows) {
  model::Policy policy;
  policy.max_reclaims_per_job = 3;
  Organisation organisation = two_teams(4, 2);
  organisation.teams[0].max_reclaims_per_job = 1;
  organisation.teams.push_back({"below", "a", 1, {}, {}});
  policy.organisation = organisation;
  const Guarantees guarantees = in_one_pool(organisation, 6);
  model::JobSpec spec = spec_by("ann", "below");
  spec.preemptible = true;
  spec.request.gpus = 1;
  const auto ask = [&](std::uint32_t stops, bool had_others_stopped = false) {
    return pool_ask(guarantees, policy, spec, {stops, had_others_stopped});
  };
  EXPECT_TRUE(ask(0).may_borrow);
  EXPECT_FALSE(ask(1).may_borrow);
  EXPECT_TRUE(ask(1).is_spared);
  EXPECT_FALSE(ask(0, true).may_borrow) << "it counts as work that cannot be stopped";
  EXPECT_FALSE(ask(1, true).is_spared) << "and has no right to what others lend";
  spec.team = "b";
  EXPECT_TRUE(ask(2).may_borrow);
  EXPECT_TRUE(ask(3).is_spared);
  spec.preemptible = false;
  EXPECT_FALSE(ask(3).is_spared);
}

// Work that may not be stopped again comes last if only others' GPUs are left. Work that never
// could be stopped waits.
TEST(Guarantees, LendTheirRestToWhatIsSparedAndToNothingElseThatCannotBeStopped) {
  PoolBalance balance(std::make_shared<const Guarantees>(in_one_pool(two_teams(4, 2), 8)));
  PoolAsk spared{{}, whole(2), false, true};
  EXPECT_EQ(balance.judge(spared).verdict, PoolVerdict::kShared);
  balance.add(spared);
  EXPECT_EQ(balance.judge(spared).verdict, PoolVerdict::kBorrows);
  EXPECT_EQ(balance.judge({{}, whole(1), false}).verdict, PoolVerdict::kKeptBack);
  balance.add(spared);
  EXPECT_EQ(balance.firm_above(), whole(4));
  const QuotaSubject a{QuotaHolder::kTeam, "a"};
  EXPECT_EQ(balance.judge({a, whole(4), false}).verdict, PoolVerdict::kOwn);
  EXPECT_EQ(balance.judge({{}, whole(5), false, true}).verdict, PoolVerdict::kKeptBack);
}

TEST(Guarantees, HaveOneHolderForEachJob) {
  Organisation organisation = two_teams(4, 2);
  organisation.teams.push_back({"below", "a", 1, {}, {}});
  organisation.of_users = {{"ann", {.guaranteed_gpus = 1}}};
  const Guarantees guarantees = in_one_pool(organisation, 8);
  const auto holder = [&](std::string user, std::string team) {
    return holder_of(guarantees, organisation, spec_by(std::move(user), std::move(team)));
  };
  EXPECT_EQ(holder("bob", "below"), (QuotaSubject{QuotaHolder::kTeam, "a"}));
  EXPECT_EQ(holder("bob", "b"), (QuotaSubject{QuotaHolder::kTeam, "b"}));
  EXPECT_EQ(holder("ann", "b"), (QuotaSubject{QuotaHolder::kUser, "ann"}));
  EXPECT_EQ(holder("bob", ""), QuotaSubject());
}

// The rule of lending.h, counted by hand from all that is held.
class Naive {
 public:
  explicit Naive(const Guarantees& guarantees) : guarantees_(guarantees) {}

  void add(const Lending::Held& held) { held_.push_back(held); }
  Lending::Held take(std::size_t index) {
    const Lending::Held held = held_[index];
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    return held;
  }
  std::size_t size() const { return held_.size(); }

  std::map<model::AttemptId, bool> labels() const {
    std::vector<Lending::Held> sorted = held_;
    std::ranges::sort(sorted, {},
                      [](const Lending::Held& h) { return std::pair(h.requested_at, h.attempt); });
    std::map<QuotaSubject, base::GpuShare> left;
    for (const auto& [holder, own] : guarantees_.of) left[holder] = own.gpus;
    for (const Lending::Held& each : sorted) {
      if (!each.what.may_borrow) left[each.what.holder] -= each.what.gpus;
    }
    std::map<QuotaSubject, bool> is_full;
    std::map<model::AttemptId, bool> labels;
    for (const Lending::Held& each : sorted) {
      base::GpuShare& rest = left[each.what.holder];
      bool& full = is_full[each.what.holder];
      full = full || (each.what.may_borrow && each.what.gpus > rest);
      labels[each.attempt] = each.what.may_borrow && full;
      if (each.what.may_borrow && !full) rest -= each.what.gpus;
    }
    return labels;
  }

  // Free GPUs and borrowed ones suffice for all that a holder within its guarantee asks for.
  // Counts whether what is held keeps the admission rule, without which nothing is owed.
  void check_what_is_owed(const PoolBalance& balance, base::GpuShare all, Hits& hits) const {
    base::GpuShare not_borrowed;
    const std::map<model::AttemptId, bool> borrowed = labels();
    std::map<QuotaSubject, base::GpuShare> used;
    for (const Lending::Held& each : held_) {
      used[each.what.holder] += each.what.gpus;
      if (!borrowed.at(each.attempt)) not_borrowed += each.what.gpus;
    }
    if (!hits.count(balance.firm_above() <= balance.shared())) return;
    for (const auto& [holder, own] : guarantees_.of) {
      if (used[holder] > own.gpus) continue;
      ASSERT_LE(not_borrowed + own.gpus - used[holder], all);
    }
  }

 private:
  const Guarantees& guarantees_;
  std::vector<Lending::Held> held_;
};

TEST(Lending, LabelsAreThoseCountedByHand) {
  std::uint64_t borrowed_ever = 0;
  Hits hits;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    base::Prng random(seed);
    const Guarantees guarantees =
        in_one_pool(two_teams(static_cast<std::uint32_t>(random.below(12)),
                              static_cast<std::uint32_t>(random.below(12))),
                    24);
    const QuotaSubject holders[] = {
        {QuotaHolder::kTeam, "a"}, {QuotaHolder::kTeam, "b"}, QuotaSubject()};
    Lending lending{guarantees};
    Naive naive(guarantees);
    std::map<model::AttemptId, bool> labels;
    const auto take = [&](const Lending::Changes& changes) {
      for (const auto& [attempt, is_borrowed] : changes) labels.at(attempt) = is_borrowed;
    };
    for (std::uint64_t step = 1; step <= 80; ++step) {
      if (naive.size() > 0 && random.chance(2, 5)) {
        const Lending::Held gone = naive.take(random.below(naive.size()));
        labels.erase(gone.attempt);
        take(lending.remove(gone));
      } else {
        const Lending::Held held{
            {model::JobId(step), 1},
            base::Instant(static_cast<std::int64_t>(1 + random.below(40))),
            {holders[random.below(3)], whole(static_cast<std::int64_t>(1 + random.below(8))),
             random.chance(2, 3)}};
        naive.add(held);
        labels[held.attempt] = false;
        take(lending.add(held));
      }
      ASSERT_EQ(labels, naive.labels()) << "seed " << seed << " step " << step;
      const auto borrowed =
          std::ranges::count_if(labels, [](const auto& label) { return label.second; });
      ASSERT_EQ(lending.borrowed(), static_cast<std::uint64_t>(borrowed));
      borrowed_ever += lending.borrowed();
      naive.check_what_is_owed(lending.balance(), whole(24), hits);
    }
  }
  EXPECT_GT(borrowed_ever, 0U);
  EXPECT_TRUE(hits.are_enough());
}

TEST(Lending, ACopyGoesOnAlone) {
  Lending lending{in_one_pool(two_teams(2, 2), 4)};
  const QuotaSubject a{QuotaHolder::kTeam, "a"};
  const Lending::Held first{{model::JobId(1), 1}, base::Instant(1), {a, whole(2), true}};
  const Lending::Held second{{model::JobId(2), 1}, base::Instant(2), {a, whole(2), true}};
  lending.add(first);
  lending.add(second);
  Lending copy = lending;
  EXPECT_EQ(copy, lending);
  EXPECT_EQ(copy.remove(first), (Lending::Changes{{second.attempt, false}}));
  EXPECT_EQ(lending.borrowed(), 1U);
}

}  // namespace
}  // namespace gpu_platform::scheduling
