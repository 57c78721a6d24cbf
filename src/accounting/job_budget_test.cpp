#include "accounting/job_budget.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/job_spec.h"

namespace gpu_platform::accounting {
namespace {

constexpr base::Instant kPricedSince(1'700'000'000'000'000'000);
constexpr base::MicroUsd kPaid{1'000'000};

// An H100 costs a thousandth in a second, an L40S half of it.
class JobBudget : public ::testing::Test {
 protected:
  JobBudget() {
    model::Billing billing;
    billing.prices = {price("H100", 3'600'000), price("L40S", 1'800'000)};
    prices_.follow(billing, kPricedSince);
    policy_.billing = billing;
  }

  static model::Price price(std::string type, std::int64_t micros) {
    model::Price price;
    price.gpu_type = std::move(type);
    price.per_hour = base::MicroUsd(micros);
    return price;
  }
  static model::JobPlace place(std::string type, std::int64_t gpus,
                               base::Duration limit = base::hours(1)) {
    model::JobPlace place;
    place.gpu_type = std::move(type);
    place.node = "n1";
    place.share = base::kWholeGpu * gpus;
    place.limit = limit;
    return place;
  }
  Cover cover(const std::vector<model::JobPlace>& places, base::MicroUsd amount) const {
    return cover_of({nodes_, prices_, policy_}, spec_, places, ExactCost(amount), kPricedSince);
  }
  bool pays(const std::vector<model::JobPlace>& places, base::MicroUsd amount) const {
    return pays_somewhere({nodes_, prices_, policy_}, spec_, places, ExactCost(amount),
                          kPricedSince);
  }

  base::PersistentMap<model::Node> nodes_;
  model::PriceBook prices_;
  model::Policy policy_;
  model::JobSpec spec_;
};

TEST_F(JobBudget, TheDearestPlaceDecides) {
  const Cover found = cover({place("L40S-48GB", 2), place("H100-80GB", 2)}, kPaid);
  EXPECT_TRUE(found.has_price);
  EXPECT_EQ(found.where, "H100-80GB");
  EXPECT_EQ(found.time, base::seconds(500));
  EXPECT_EQ(found.least, base::MicroUsd(120'000));
  EXPECT_EQ(describe(found, kPaid),
            "budget 1.00: pays for 8 min 20 s on H100-80GB; the job ends then");
}

TEST_F(JobBudget, APlaceWhoseLimitIsPaidForDecidesNothing) {
  // By their speeds it runs longer on the cheaper GPUs.
  const Cover found = cover(
      {place("H100-80GB", 1, base::seconds(1000)), place("L40S-48GB", 1, base::seconds(2001))},
      kPaid);
  EXPECT_EQ(found.where, "L40S-48GB");
  EXPECT_EQ(found.time, base::seconds(2000));
  EXPECT_EQ(cover({place("H100-80GB", 1, base::seconds(1000))}, kPaid).time, std::nullopt);
}

TEST_F(JobBudget, GpusWithoutAPriceAreNotFree) {
  const Cover found = cover({place("H100-80GB", 1), place("T4-16GB", 1)}, kPaid);
  EXPECT_FALSE(found.has_price);
  EXPECT_EQ(found.where, "T4-16GB");
  EXPECT_FALSE(pays({place("T4-16GB", 1)}, kPaid));
}

TEST_F(JobBudget, PaysForAMinuteOrForAShorterLimit) {
  EXPECT_TRUE(pays({place("H100-80GB", 1), place("L40S-48GB", 1)}, base::MicroUsd(30'000)));
  EXPECT_FALSE(pays({place("H100-80GB", 1), place("L40S-48GB", 1)}, base::MicroUsd(29'999)));
  EXPECT_TRUE(pays({place("H100-80GB", 1, base::seconds(10))}, base::MicroUsd(10'000)));
}

TEST_F(JobBudget, TimesAreCutOff) {
  EXPECT_EQ(paid_time_text(base::seconds(6545)), "1 h 49 min");
  EXPECT_EQ(paid_time_text(base::seconds(3599)), "59 min 59 s");
  EXPECT_EQ(paid_time_text(base::seconds(59)), "59 s");
}

}  // namespace
}  // namespace gpu_platform::accounting
