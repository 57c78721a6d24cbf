#include "health/rules.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "health/rule_table.h"

namespace gpu_platform::health {
namespace {

Rules made(Profile profile, const std::vector<RuleOverride>& overrides = {}) {
  auto rules = Rules::make(profile, overrides);
  EXPECT_TRUE(rules.has_value()) << rules.error().message;
  return *std::move(rules);
}

std::string mistake(const std::vector<RuleOverride>& overrides) {
  const auto rules = Rules::make(Profile::kNvidia, overrides);
  return rules ? std::string() : rules.error().field + ": " + rules.error().message;
}

TEST(Rules, HaveOneRowForEachXidInOrderAndNamesOnce) {
  std::uint32_t before = 0;
  std::set<std::string_view> names;
  for (const Rule& rule : xid_rows()) {
    EXPECT_GT(rule.code, before);
    before = rule.code;
    EXPECT_EQ(rule.name, "xid-" + std::to_string(rule.code));
  }
  const Rules rules = made(Profile::kNvidia);
  for (const Rule& rule : rules.rows()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_FALSE(rule.source.empty()) << rule.name;
    EXPECT_FALSE(rule.what.empty()) << rule.name;
    EXPECT_EQ(rule.mode, RuleMode::kExecute) << rule.name;
  }
}

TEST(Rules, KnowEachXidOfTheCatalogue) {
  const Rules rules = made(Profile::kNvidia);
  for (const std::uint32_t xid :
       {8,   11,  13,  14,  16,  25,  31,  32,  37,  38,  39,  40,  41,  43,  44,  45,  46,
        48,  54,  60,  61,  62,  63,  64,  66,  67,  68,  69,  70,  71,  72,  74,  75,  76,
        77,  78,  79,  80,  82,  83,  84,  85,  86,  88,  89,  92,  93,  94,  95,  96,  97,
        98,  99,  100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 119, 120, 121, 126,
        127, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 139, 140, 141, 142, 143, 144,
        145, 146, 147, 148, 149, 150, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 161,
        162, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 175, 176}) {
    EXPECT_EQ(rules.of_xid(xid).code, xid);
  }
  for (const std::uint32_t xid : {0, 1, 12, 73, 174, 999}) {
    EXPECT_EQ(rules.of_xid(xid).name, "xid-unknown") << xid;
  }
}

TEST(Rules, ProfilesChangeRowsAndSaySo) {
  const Rules cloud = made(Profile::kCloud);
  EXPECT_EQ(cloud.of_xid(48).action, Action::kReboot);
  EXPECT_EQ(cloud.of_xid(64).action, Action::kOffline);
  EXPECT_EQ(cloud.of_xid(119).action, Action::kDegrade);
  EXPECT_EQ(cloud.of_xid(48).changed_by, "profile cloud");
  const Rules strict = made(Profile::kStrict);
  EXPECT_GE(strict.of_xid(31).action, Action::kDrain);
  EXPECT_GE(strict.of_xid(43).action, Action::kDrain);
  EXPECT_EQ(made(Profile::kNvidia).of_xid(31).action, Action::kCount);
}

TEST(Rules, SiteChangesRowsForAllTypesOrForOne) {
  const Rules rules = made(Profile::kNvidia, {{"xid-94", "H100", Action::kCount, {}},
                                              {"xid-31", "", {}, RuleMode::kShadow}});
  EXPECT_EQ(rules.of_xid(94, "H100").action, Action::kCount);
  EXPECT_EQ(rules.of_xid(94, "A100").action, Action::kReset);
  EXPECT_EQ(rules.of_xid(31, "H100").mode, RuleMode::kShadow) << "of all types, in any order";
  EXPECT_EQ(rules.of_xid(31).changed_by, "configuration");
}

TEST(Rules, OfATypeBeginWithThoseOfItsFamilyInAnyOrder) {
  const Rules rules = made(Profile::kNvidia, {{"xid-94", "h100-80gb", Action::kDrain, {}},
                                              {"xid-31", "H100", Action::kDegrade, {}}});
  EXPECT_EQ(rules.of_xid(31, "H100-80GB").action, Action::kDegrade);
  EXPECT_EQ(rules.of_xid(94, "H100-80GB").action, Action::kDrain);
  EXPECT_EQ(rules.of_xid(31, "H100-94GB").action, Action::kDegrade);
  EXPECT_EQ(rules.of_xid(94, "H100-94GB").action, Action::kReset);
  EXPECT_EQ(rules.of_xid(31, "A100-80GB").action, Action::kCount);
}

TEST(Rules, MistakesNameTheFieldAndWhatIsAllowed) {
  EXPECT_EQ(mistake({{"xid-31", "", Action::kCount, {}}, {"xid-1000", "", Action::kCount, {}}}),
            "rules[1].rule: \"xid-1000\" is no rule; 'gpu-platform health rules' lists them, such "
            "as xid-79 and remap-pending");
  EXPECT_EQ(mistake({{"xid-31", "", {}, {}}}),
            "rules[0]: it changes nothing; give action (NONE, COUNT, AVOID, DEGRADE, DRAIN, RESET, "
            "OFFLINE, REBOOT) or mode (EXECUTE, SHADOW, OFF)");
}

TEST(Rules, OfNodesGoBeforeThoseOfTypes) {
  const Rules rules = made(Profile::kNvidia, {{"xid-94", "", {}, RuleMode::kShadow, "dgx-a*"},
                                              {"xid-94", "H100", Action::kDrain, {}},
                                              {"xid-94", "", Action::kCount, {}, "dgx-a*"},
                                              {"xid-31", "A100", Action::kDegrade, {}, "*-7"},
                                              {"xid-unknown", "", {}, RuleMode::kOff, "dgx-b1"}});
  EXPECT_EQ(rules.of_xid(94, "H100-80GB").action, Action::kDrain);
  EXPECT_EQ(rules.of_xid(94, "H100-80GB", "dgx-b1").action, Action::kDrain);
  const Rule& there = rules.of_xid(94, "H100-80GB", "dgx-a7");
  EXPECT_EQ(there.action, Action::kCount);
  EXPECT_EQ(there.mode, RuleMode::kShadow) << "both entries of these nodes";
  EXPECT_EQ(there.changed_by, "configuration, for nodes dgx-a*");
  EXPECT_EQ(rules.of_xid(31, "A100-80GB", "dgx-7").action, Action::kDegrade);
  EXPECT_EQ(rules.of_xid(31, "H100-80GB", "dgx-7").action, Action::kCount);
  EXPECT_EQ(rules.of_xid(999, "H100-80GB", "dgx-b1").mode, RuleMode::kOff);
  EXPECT_EQ(rules.of_xid(999, "H100-80GB", "dgx-b2").mode, RuleMode::kExecute);
  EXPECT_EQ(mistake({{"xid-1", "", {}, RuleMode::kOff, "dgx-a*"}}).find("rules[0].rule"), 0U);
}

}  // namespace
}  // namespace gpu_platform::health
