#include "bin/site_facts.h"

#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

namespace gpu_platform::bin {
namespace {

constexpr base::Instant kSiteNoon(base::hours(480'000).value());

alerts::Moment site_moment(base::Duration after) {
  return {kSiteNoon + after, base::Instant(base::hours(1).value()) + after};
}

const alerts::Fact* fact_of(const std::vector<alerts::Fact>& facts, alerts::Signal signal) {
  const auto found = std::ranges::find(facts, signal, &alerts::Fact::signal);
  return found == facts.end() ? nullptr : &*found;
}

TEST(SiteFacts, ADeliveryIsLateAfterTenMinutes) {
  SiteFacts site({.data_dir = "/", .history = nullptr, .certificate_end = {}});
  outbound::ChannelState channel;
  channel.channel = "hook";
  channel.problem = "the server answers: 500";
  channel.oldest = kSiteNoon;
  const auto facts_after = [&](base::Duration after) {
    return site.of({}, std::span(&channel, 1), site_moment(after));
  };
  const auto soon = facts_after(base::minutes(10));
  ASSERT_NE(fact_of(soon, alerts::Signal::kDelivery), nullptr);
  EXPECT_EQ(fact_of(soon, alerts::Signal::kDelivery)->value, 0);
  const auto late = facts_after(base::minutes(10) + base::seconds(1));
  EXPECT_EQ(fact_of(late, alerts::Signal::kDelivery)->value, 1);
  EXPECT_EQ(fact_of(late, alerts::Signal::kDelivery)->detail, channel.problem);
}

TEST(SiteFacts, TheCertificateIsLookedUpEachTenMinutesAndUnknownWithoutAnEnd) {
  int looked = 0;
  base::Instant end = kSiteNoon + base::hours(24 * 20);
  SiteFacts site({.data_dir = "/", .history = nullptr, .certificate_end = [&] {
                    ++looked;
                    return end;
                  }});
  const auto days_after = [&](base::Duration after) {
    return fact_of(site.of({}, {}, site_moment(after)), alerts::Signal::kCertificate)->value;
  };
  EXPECT_EQ(days_after({}), 20);
  EXPECT_EQ(days_after(base::minutes(9)), 19);
  EXPECT_EQ(looked, 1);
  end = {};
  EXPECT_EQ(days_after(base::minutes(10)), std::nullopt);
  EXPECT_EQ(looked, 2);
}

TEST(SiteFacts, AFolderThatIsNotThereIsUnknownAndWhatTheSiteDoesNotHaveIsNoFact) {
  SiteFacts site({.data_dir = "/nonexistent", .history = nullptr, .certificate_end = {}});
  const auto facts = site.of({}, {}, site_moment({}));
  ASSERT_NE(fact_of(facts, alerts::Signal::kDiskLow), nullptr);
  EXPECT_EQ(fact_of(facts, alerts::Signal::kDiskLow)->value, std::nullopt);
  EXPECT_EQ(fact_of(facts, alerts::Signal::kCertificate), nullptr);
  EXPECT_EQ(fact_of(facts, alerts::Signal::kHistory), nullptr);
}

}  // namespace
}  // namespace gpu_platform::bin
