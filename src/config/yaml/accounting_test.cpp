#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/utc.h"
#include "config/yaml/reader.h"

namespace gpu_platform::config {
namespace {

using base::MicroUsd;

model::Billing billing_of(std::string_view yaml) {
  const Checked checked = parse_configuration(yaml);
  EXPECT_TRUE(checked.has_value()) << yaml;
  if (!checked) {
    ADD_FAILURE() << describe(checked.error().front(), "site.yaml");
    return {};
  }
  return *checked->policy.billing;
}

model::Price price_of(std::string type, std::int64_t micros) {
  model::Price price;
  price.gpu_type = std::move(type);
  price.per_hour = MicroUsd(micros);
  return price;
}

TEST(Accounting, AnEmptyFileHasTheUsualPrices) {
  const model::Billing billing = billing_of("");
  EXPECT_EQ(billing.prices, model::default_prices());
  EXPECT_EQ(billing.currency, "USD");
  EXPECT_EQ(billing.spot_discount_percent, 70U);
  EXPECT_FALSE(billing.preempted_is_free);
  EXPECT_TRUE(billing_of("accounting: {prices: []}\n").prices.empty());
}

TEST(Accounting, ReadsPricesWithoutRounding) {
  const model::Billing billing = billing_of(R"(
accounting:
  prices:
    - {gpu_type: t4, per_gpu_hour: 0.526}
    - {gpu_type: h100-80gb, capacity: spot, node: dgx-a*, from: 2027-01-01, until: 2028-02-29T12:00:00Z, per_gpu_hour: 1.650001}
)");
  ASSERT_EQ(billing.prices.size(), 2U);
  EXPECT_EQ(billing.prices[0], price_of("T4", 526'000));
  model::Price spot = price_of("H100-80GB", 1'650'001);
  spot.capacity = model::CapacityClass::kSpot;
  spot.node = "dgx-a*";
  spot.from = base::parse_rfc3339("2027-01-01T00:00:00Z").value();
  spot.until = base::parse_rfc3339("2028-02-29T12:00:00Z").value();
  EXPECT_EQ(billing.prices[1], spot);
}

TEST(Accounting, DividesThePriceOfAnInstanceByItsGpus) {
  const model::Billing billing = billing_of(R"(
accounting:
  prices:
    - {instance: p5.48xlarge, per_hour: 98.32}
    - {instance: g4dn.12xlarge, capacity: spot, per_hour: 1.000002}
)");
  ASSERT_EQ(billing.prices.size(), 2U);
  EXPECT_EQ(billing.prices[0], price_of("H100-80GB", 12'290'000));
  EXPECT_EQ(billing.prices[1].gpu_type, "T4-16GB");
  // A quarter is 0.2500005, half a millionth up.
  EXPECT_EQ(billing.prices[1].per_hour, MicroUsd(250'001));
}

TEST(Accounting, WorksOutThePriceOfOwnedHardware) {
  const model::Billing billing = billing_of(R"(
accounting:
  energy: {electricity_per_kwh: 0.30, co2_grams_per_kwh: 380}
  owned:
    - {gpu_type: H100, purchase: 35064, lifetime_months: 48, power_watts: 1000, share_of_room_per_month: 73.05}
    - {node: attic-*, purchase: 0, lifetime_months: 36, power_watts: 500, electricity_per_kwh: 0.10}
)");
  // Other types keep their usual prices.
  ASSERT_EQ(billing.prices.size(), model::default_prices().size() + 1);
  // 35064 / (48 × 730.5) = 1, a kilowatt-hour 0.30, and 73.05 / 730.5 = 0.10.
  EXPECT_EQ(billing.prices[billing.prices.size() - 2], price_of("H100", 1'400'000));
  model::Price attic = price_of("", 50'000);
  attic.node = "attic-*";
  EXPECT_EQ(billing.prices.back(), attic);
  EXPECT_EQ(billing.energy.per_kwh, MicroUsd(300'000));
  EXPECT_EQ(billing.energy.co2_grams_per_kwh, 380U);
}

TEST(Accounting, RoundsThePriceOfOwnedHardwareOnce) {
  const model::Billing billing = billing_of(R"(
accounting:
  prices: []
  owned: [{gpu_type: H100, purchase: 30000, lifetime_months: 60}]
)");
  ASSERT_EQ(billing.prices.size(), 1U);
  // 30000 / 43830 = 0.68446269…
  EXPECT_EQ(billing.prices[0].per_hour, MicroUsd(684'463));
}

TEST(Accounting, ReadsDiscountsAndTheRest) {
  const model::Billing billing = billing_of(R"(
teams: [{name: research}]
accounting:
  currency: EUR
  preempted: free
  spot_discount_percent: 55
  cpu_core_hour: 0.04
  memory_gib_hour: 0.005
  discounts: [{team: research, percent: 12.5}]
  prices: [{gpu_type: H100, per_gpu_hour: 5, currency: EUR}]
)");
  EXPECT_EQ(billing.currency, "EUR");
  EXPECT_TRUE(billing.preempted_is_free);
  EXPECT_EQ(billing.spot_discount_percent, 55U);
  EXPECT_EQ(billing.cpu, (model::CpuPrices{MicroUsd(40'000), MicroUsd(5'000)}));
  EXPECT_EQ(billing.discounts, (std::vector<model::Discount>{{"research", 1250}}));
}

TEST(Accounting, PricesMayFollowEachOther) {
  EXPECT_EQ(billing_of(R"(
accounting:
  prices:
    - {gpu_type: H100, until: 2027-01-01, per_gpu_hour: 5}
    - {gpu_type: H100, from: 2027-01-01, per_gpu_hour: 6}
    - {gpu_type: H100, capacity: spot, per_gpu_hour: 2}
    - {gpu_type: H100, node: dgx-1, per_gpu_hour: 7}
)")
                .prices.size(),
            4U);
}

TEST(Accounting, NotesAGapBetweenTwoPrices) {
  const Checked checked = parse_configuration(R"(accounting:
  prices:
    - {gpu_type: H100, from: 2027-03-01, per_gpu_hour: 6}
    - {gpu_type: H100, until: 2027-01-01, per_gpu_hour: 5}
    - {gpu_type: A100, until: 2027-01-01, per_gpu_hour: 4}
    - {gpu_type: A100, from: 2027-01-01, until: 2028-01-01, per_gpu_hour: 4.5}
)");
  ASSERT_TRUE(checked.has_value()) << describe(checked.error().front(), "site.yaml");
  ASSERT_EQ(checked->notes.size(), 1U);
  EXPECT_EQ(describe(checked->notes[0], "site.yaml"),
            "site.yaml:3:7: accounting.prices[0]: between 2027-01-01T00:00:00Z, where the price of "
            "line 4 ends, and 2027-03-01T00:00:00Z, use that no other price is of has no price");
}

TEST(Accounting, NotesATypeThatTheCatalogueLacks) {
  const Checked checked = parse_configuration(
      "accounting:\n  prices:\n    - {gpu_type: NVIDIA Odd, per_gpu_hour: 1}\n");
  ASSERT_TRUE(checked.has_value());
  ASSERT_EQ(checked->notes.size(), 1U);
  EXPECT_EQ(describe(checked->notes[0], "site.yaml").find("site.yaml:3:7: accounting.prices[0]"),
            0U);
}

TEST(Accounting, IsRefusedWithThePlaceAndWhatIsAllowed) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"accounting:\n  prices: 5\n", "site.yaml:2:11: 'accounting.prices' must be a list"},
      {"accounting:\n  prices:\n    - H100\n", ":3:7: an entry of 'accounting.prices' must be"},
      {"accounting:\n  prices:\n    - {gpu_type: H100, per_gpu_hour: -5}\n",
       ":3:38: 'per_gpu_hour' in 'accounting.prices': '-5' is not an amount of money"},
      {"accounting:\n  prices:\n    - {gpu_type: H100, per_gpu_hour: 0.1234567}\n",
       "more than six decimals"},
      {"accounting:\n  prices:\n    - {gpu_type: H100, per_gpu_hour: 10000.01}\n",
       "must be at most 10000.00"},
      {"accounting:\n  prices:\n    - {gpu_type: H100}\n", "and 'per_gpu_hour'"},
      {"accounting:\n  prices:\n    - {per_gpu_hour: 5}\n", "needs 'gpu_type' or 'node'"},
      {"accounting:\n  prices:\n    - {gpu_type: H100, price: 5}\n", "unknown key 'price'"},
      {"accounting:\n  prices:\n    - {gpu_type: H100, per_gpu_hour: 5, capacity: cheap}\n",
       "must be on_demand, spot or reserved"},
      {"accounting:\n  prices:\n    - {gpu_type: H100, per_gpu_hour: 5, from: 2027-02-29}\n",
       "'from' in 'accounting.prices' must be a day or a time"},
      {"accounting:\n  prices:\n"
       "    - {gpu_type: H100, per_gpu_hour: 5, from: 2027-02-01, until: 2027-02-01}\n",
       "'until' in 'accounting.prices' must be after 'from'"},
      {"accounting:\n  prices:\n    - {gpu_type: H100, per_gpu_hour: 5, currency: EUR}\n",
       ":3:7: accounting.prices[0]: is in EUR, and the site has one currency: USD"},
      {"accounting:\n  prices:\n    - {gpu_type: H100, per_gpu_hour: 5}\n"
       "    - {gpu_type: h100, from: 2027-01-01, per_gpu_hour: 6}\n",
       ":4:7: accounting.prices[1]: counts at the same time as that of line 3"},
      {"accounting:\n  prices:\n    - {instance: p9.metal, per_hour: 5}\n",
       "no instance 'p9.metal' is known"},
      {"accounting:\n  prices:\n    - {instance: p5.48xlarge, per_gpu_hour: 5}\n",
       "with an instance needs 'per_hour'"},
      {"teams: [{name: research}]\naccounting:\n  discounts:\n    - {team: reserch, percent: 5}\n",
       ":4:7: accounting.discounts[0]: no team 'reserch'"},
      {"accounting:\n  discounts:\n    - {team: a, percent: 5}\n    - {team: a, percent: 6}\n",
       ":4:7: accounting.discounts[1]: team 'a' has a discount already"},
      {"accounting:\n  discounts:\n    - {team: a, percent: 100.01}\n", "must be 0 to 100"},
      {"accounting:\n  discounts:\n    - {team: a, percent: 1.005}\n", "at most two decimals"},
      {"accounting:\n  discounts:\n    - {team: a}\n", "needs 'percent'"},
      {"accounting:\n  owned:\n    - {gpu_type: H100, purchase: 5}\n", "needs 'lifetime_months'"},
      {"accounting:\n  owned:\n    - {gpu_type: H100, purchase: 5, lifetime_months: 0}\n",
       "'lifetime_months' in 'accounting.owned' must be a whole number from 1"},
      {"accounting:\n  currency: euros\n", "must be three capital letters"},
      {"accounting:\n  preempted: never\n", "'never' is not billed or free"},
      {"accounting:\n  spot_discount_percent: 101\n", "0 to 100"},
      {"accounting:\n  cpu_core_hour: 1e3\n", "is not an amount of money"},
  };
  for (const auto& [yaml, said] : cases) {
    const Checked checked = parse_configuration(yaml);
    ASSERT_FALSE(checked.has_value()) << yaml;
    const std::string problem = describe(checked.error().front(), "site.yaml");
    EXPECT_NE(problem.find(said), std::string::npos) << yaml << "\n -> " << problem;
  }
}

}  // namespace
}  // namespace gpu_platform::config
