#include "scheduling/order/fair_share_ranking.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"

namespace gpu_platform::scheduling {
namespace {

constexpr base::Instant kStart(1'700'000'000'000'000'000);

FairShareUse used(const std::map<Account, std::uint64_t>& amounts) {
  FairShareUse::Accounts accounts;
  for (const auto& [account, amount] : amounts) accounts[account].counted = amount;
  return {kStart, kStart, std::move(accounts)};
}

std::vector<std::string> in_order(const FairShareRanking& ranking) {
  std::vector<ShareRow> users;
  std::ranges::copy_if(ranking.rows(), std::back_inserter(users),
                       [](const ShareRow& row) { return !row.user.empty(); });
  std::ranges::stable_sort(users, {}, &ShareRow::place);
  std::vector<std::string> names;
  for (const ShareRow& row : users) names.push_back(row.team + "/" + row.user);
  return names;
}

const model::Organisation kRankedLab{
    .teams = {{"lab", {}, 2, {{"ann", 1}, {"bob", 1}}, {}}, {"shop", {}, 1, {{"cyd", 1}}, {}}}};

TEST(FairShareRanking, PutTheTeamThatUsedLeastForItsSharesFirst) {
  // The lab has twice the shares: 150 of its use weigh as 75 of the shop's.
  const FairShareRanking ranking(
      kRankedLab, used({{{"lab", "ann"}, 100}, {{"lab", "bob"}, 50}, {{"shop", "cyd"}, 80}}), {});
  EXPECT_EQ(in_order(ranking), (std::vector<std::string>{"lab/bob", "lab/ann", "shop/cyd"}));
}

TEST(FairShareRanking, LetNobodyOvertakeByTheTeamsOfOthers) {
  // cyd has used less than either, but the shop as a whole more than its shares.
  const FairShareRanking ranking(kRankedLab,
                                 used({{{"lab", "ann"}, 100},
                                       {{"lab", "bob"}, 100},
                                       {{"shop", "cyd"}, 10},
                                       {{"shop", "dan"}, 200}}),
                                 {});
  EXPECT_EQ(in_order(ranking),
            (std::vector<std::string>{"lab/ann", "lab/bob", "shop/cyd", "shop/dan"}));
  EXPECT_EQ(ranking.of("lab", "ann").place, ranking.of("lab", "bob").place);
}

TEST(FairShareRanking, TakeTheUsersOfTeamsThatTieTogether) {
  const FairShareRanking ranking(kRankedLab,
                                 used({{{"lab", "ann"}, 20},
                                       {{"lab", "bob"}, 180},
                                       {{"shop", "cyd"}, 70},
                                       {{"shop", "dan"}, 30}}),
                                 {});
  EXPECT_EQ(in_order(ranking),
            (std::vector<std::string>{"lab/ann", "shop/dan", "shop/cyd", "lab/bob"}));
}

TEST(FairShareRanking, GiveFactorsAsTheClassicFormulaDoes) {
  // bob's own use is none of 300; of his team's 150, half are taken for his.
  const FairShareRanking ranking(kRankedLab, used({{{"lab", "ann"}, 150}, {{"shop", "cyd"}, 150}}),
                                 {});
  const auto row = [&](std::string_view user) {
    return *std::ranges::find(ranking.rows(), user, &ShareRow::user);
  };
  EXPECT_EQ(row("ann").normal_shares / (std::uint64_t{1} << 20), 1365U);  // 1/3
  EXPECT_EQ(ranking.of("lab", "eve").factor, kMaxFactor);                 // an unknown user
  EXPECT_LT(ranking.of("lab", "ann").factor, ranking.of("lab", "bob").factor);
  EXPECT_LT(ranking.of("lab", "bob").factor, kMaxFactor);
  // The shop has used half of all, and a third is its: 2^-1.5.
  EXPECT_EQ(ranking.of("shop", "cyd").factor, 362U);
}

TEST(FairShareRanking, TakeTheUseOfTheFirstLevelAsItIs) {
  // Neither ann, who has used all of it, nor a team changes the factor of those who used nothing.
  const model::Organisation lab{.teams = {{"lab", {}, 1, {{"bob", 1}}, {}}}};
  const FairShareRanking ranking(lab, used({{{"", "ann"}, 70}, {{"", "kim"}, 0}}), {});
  EXPECT_EQ(ranking.of("", "kim").factor, kMaxFactor);
  EXPECT_EQ(ranking.of("lab", "bob").factor, kMaxFactor);
  EXPECT_NEAR(ranking.of("", "ann").factor, kMaxFactor / 8, 1) << "three times a third";
}

// A tree of three levels, worked out by hand: of all use ann has 20 %, bob and dan 25 % each, gus
// 30 %. S: normalised shares; U: effective use; F = 2^(-U/S).
struct ByHand {
  std::string_view name;  // of a user, else of a team
  double shares;
  double effective_use;
  double factor;
};
constexpr ByHand kByHand[] = {
    {"north", 40.0 / 200, 0.45, 0.210224},     // first level: 0.20 + 0.25
    {"south", 60.0 / 200, 0.25, 0.561231},     // first level
    {"east", 99.0 / 200, 0.30, 0.656988},      // first level
    {"kim", 1.0 / 200, 0.00, 1.000000},        // first level, no use
    {"hill", 30.0 / 200, 0.3875, 0.166855},    // 0.20 + (0.45 - 0.20) * 30/40
    {"lake", 10.0 / 200, 0.30, 0.015625},      // 0.25 + (0.45 - 0.25) * 10/40
    {"coast", 25.0 / 200, 0.25, 0.250000},     // 0.25 + (0.25 - 0.25) * 25/60
    {"port", 35.0 / 200, 0.145833, 0.561231},  // 0.00 + (0.25 - 0.00) * 35/60
    {"ann", 30.0 / 200, 0.3875, 0.166855},     // 0.20 + (0.3875 - 0.20) * 1/1
    {"bob", 5.0 / 200, 0.275, 0.000488},       // 0.25 + (0.30 - 0.25) * 1/2
    {"cyd", 5.0 / 200, 0.15, 0.015625},        // 0.00 + (0.30 - 0.00) * 1/2
    {"dan", 25.0 / 200, 0.25, 0.250000},       // 0.25 + (0.25 - 0.25) * 1/1
    {"eve", 35.0 / 200, 0.145833, 0.561231},   // 0.00 + (0.1458 - 0.00) * 1/1
    {"gus", 99.0 / 200, 0.30, 0.656988},       // 0.30 + (0.30 - 0.30) * 1/1
};

TEST(FairShareRanking, GiveTheFactorsOfATreeWorkedOutByHand) {
  const model::Organisation tree{.teams = {{"north", {}, 40, {}, {}},
                                           {"south", {}, 60, {}, {}},
                                           {"east", {}, 99, {{"gus", 1}}, {}},
                                           {"hill", "north", 30, {{"ann", 1}}, {}},
                                           {"lake", "north", 10, {{"bob", 1}, {"cyd", 1}}, {}},
                                           {"coast", "south", 25, {{"dan", 1}}, {}},
                                           {"port", "south", 35, {{"eve", 1}}, {}}}};
  const FairShareRanking ranking(tree,
                                 used({{{"hill", "ann"}, 20},
                                       {{"lake", "bob"}, 25},
                                       {{"coast", "dan"}, 25},
                                       {{"east", "gus"}, 30},
                                       {{"", "kim"}, 0}}),
                                 {});
  constexpr double kWhole = 4294967296.0;
  ASSERT_EQ(ranking.rows().size(), std::size(kByHand) + 1) << "and the organisation";
  for (const ByHand& expected : kByHand) {
    const auto row = std::ranges::find_if(ranking.rows(), [&](const ShareRow& each) {
      return each.user == expected.name || (each.user.empty() && each.team == expected.name);
    });
    ASSERT_NE(row, ranking.rows().end()) << expected.name;
    EXPECT_NEAR(static_cast<double>(row->normal_shares) / kWhole, expected.shares, 1e-6)
        << expected.name;
    EXPECT_NEAR(static_cast<double>(row->effective_use) / kWhole, expected.effective_use, 1e-6)
        << expected.name;
    EXPECT_NEAR(row->factor, expected.factor * kMaxFactor, 1.0) << expected.name;
  }
}

TEST(FairShareRanking, OfNobodyAreThoseOfTheOrganisation) {
  const FairShareRanking ranking({}, {}, {});
  EXPECT_EQ(ranking.rows().size(), 1U);
  EXPECT_EQ(ranking.of("", "ann"), FairShareRank{});
}

TEST(FairShareRanking, KeepThePlacesOfWhoeverIsNotPassed) {
  const Account a{"", "a"};
  const Account b{"", "b"};
  const Account c{"", "c"};
  const FairShareRanking before({}, used({{a, 10}, {b, 20}, {c, 30}}), {});
  const FairShareRanking grown({}, used({{a, 15}, {b, 21}, {c, 300}}), before);
  EXPECT_TRUE([&] {
    return std::ranges::all_of(std::vector{a, b, c}, [&](const Account& each) {
      return before.of(each.team, each.user).place == grown.of(each.team, each.user).place;
    });
  }());
  const FairShareRanking passed({}, used({{a, 25}, {b, 21}, {c, 300}}), grown);
  EXPECT_EQ(passed.of("", "c").place, grown.of("", "c").place);
  EXPECT_LT(passed.of("", "b").place, passed.of("", "a").place);
  const bool one_kept = passed.of("", "a").place == grown.of("", "a").place ||
                        passed.of("", "b").place == grown.of("", "b").place;
  EXPECT_TRUE(one_kept);
}

// ---- the walk, against the definition: compare two users at the first level where they differ

struct SharedSite {
  model::Organisation organisation;
  std::map<Account, std::uint64_t> use;
};

SharedSite draw_shared_site(base::Prng& random) {
  SharedSite world;
  const std::uint64_t teams = random.below(6);
  for (std::uint64_t i = 0; i < teams; ++i) {
    model::Team team{.name = "t" + std::to_string(i)};
    if (i > 0 && random.chance(1, 2)) team.parent = "t" + std::to_string(random.below(i));
    team.shares = static_cast<std::uint32_t>(1 + random.below(3));
    world.organisation.teams.push_back(team);
  }
  const std::uint64_t users = 1 + random.below(8);
  for (std::uint64_t i = 0; i < users; ++i) {
    const std::uint64_t team = random.below(teams + 1);
    world.use[{team == teams ? "" : "t" + std::to_string(team), "u" + std::to_string(i)}] =
        random.below(5);
  }
  return world;
}

// Use for shares of everything from the first level down to the account.
std::vector<double> path_of(const SharedSite& world, const Account& account) {
  std::vector<double> path = {static_cast<double>(world.use.at(account))};
  std::string name = account.team;
  while (!name.empty()) {
    const model::Team& team = *model::find_team(world.organisation, name);
    const std::function<std::uint64_t(const std::string&)> sum = [&](const std::string& top) {
      std::uint64_t all = 0;
      for (const auto& [each, use] : world.use) all += each.team == top ? use : 0;
      for (const model::Team& each : world.organisation.teams) {
        if (each.parent == top) all += sum(each.name);
      }
      return all;
    };
    path.insert(path.begin(), static_cast<double>(sum(name)) / team.shares);
    name = team.parent;
  }
  return path;
}

RC_GTEST_PROP(FairShareRanking, AreTheLexicographicOrderOfUseForSharesFromTheRoot, ()) {
  base::Prng random(*rc::gen::arbitrary<std::uint64_t>());
  const SharedSite world = draw_shared_site(random);
  SharedSite earlier = world;
  for (auto& [account, use] : earlier.use) use = random.below(5);
  const FairShareRanking before(world.organisation, used(earlier.use), {});
  const FairShareRanking ranking(world.organisation, used(world.use), before);
  for (const auto& [a, use_of_a] : world.use) {
    for (const auto& [b, use_of_b] : world.use) {
      const auto first = path_of(world, a);
      const auto second = path_of(world, b);
      const auto place_a = ranking.of(a.team, a.user).place;
      const auto place_b = ranking.of(b.team, b.user).place;
      RC_ASSERT((first < second) == (place_a < place_b));
      RC_ASSERT((first == second) == (place_a == place_b));
    }
  }
}

// One after the other in between; many steps, so few walks.
class Newcomers : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Newcomers, FindRoom) {
  base::Prng random(GetParam());
  std::map<Account, std::uint64_t> use;
  FairShareRanking ranking;
  for (int i = 0; i < 150; ++i) {
    use[{"", "u" + std::to_string(i)}] = 1000 + 2 * static_cast<std::uint64_t>(150 - i);
    if (random.chance(1, 8)) use.begin()->second = random.below(2000);
    ranking = FairShareRanking({}, used(use), ranking);
  }
  for (const auto& [a, of_a] : use) {
    for (const auto& [b, of_b] : use) {
      ASSERT_EQ(of_a < of_b, ranking.of("", a.user).place < ranking.of("", b.user).place)
          << a.user << " " << b.user;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Walks, Newcomers, ::testing::Range<std::uint64_t>(1, 11));

}  // namespace
}  // namespace gpu_platform::scheduling
