#include "model/price.h"

#include <gtest/gtest.h>

#include "model/codec.h"

namespace gpu_platform::model {
namespace {

using base::Instant;
using base::MicroUsd;

// 2026-12-31T00:00:00Z.
constexpr Instant kDay0{1'798'675'200'000'000'000};

Instant day(std::int64_t n) {
  return kDay0 + base::hours(24 * n);
}

Price price_of(std::string type, std::int64_t micros) {
  Price price;
  price.gpu_type = std::move(type);
  price.per_hour = MicroUsd(micros);
  return price;
}

Billing billing_of(std::vector<Price> prices, std::uint32_t spot_discount = 70) {
  Billing billing;
  billing.prices = std::move(prices);
  billing.spot_discount_percent = spot_discount;
  return billing;
}

PriceBook book_of(std::vector<Price> prices, Instant at = kDay0) {
  PriceBook book;
  book.follow(billing_of(std::move(prices)), at);
  return book;
}

struct Gpu {
  std::string type = "H100-80GB";
  CapacityClass capacity = CapacityClass::kOnDemand;
  std::string node = "dgx-a1";
};

// In millionths; nothing if there is no price.
std::optional<std::int64_t> per_hour(const PriceBook& book, Instant at, const Gpu& gpu = {}) {
  const PriceEntry* const entry = book.at(gpu.type, gpu.capacity, gpu.node, at);
  if (entry == nullptr) return std::nullopt;
  return entry->price.per_hour.value();
}

// No two prices of the same type, class and node count at the same time, and derived ones end with
// what they follow from.
void expect_sound(const PriceBook& book) {
  for (std::size_t i = 0; i < book.entries.size(); ++i) {
    const PriceEntry& a = book.entries[i];
    EXPECT_EQ(a.id, i + 1);
    EXPECT_TRUE(!a.end.is_set() || a.begin <= a.end) << a.id;
    if (a.derived_from != 0) {
      const PriceEntry& base = *book.find(a.derived_from);
      EXPECT_TRUE(!base.end.is_set() || (a.end.is_set() && a.end <= base.end)) << a.id;
      continue;
    }
    for (const PriceEntry& b : book.entries) {
      if (b.id <= a.id || b.derived_from != 0 || a.price.gpu_type != b.price.gpu_type ||
          a.price.capacity != b.price.capacity || a.price.node != b.price.node) {
        continue;
      }
      const bool is_before = a.end.is_set() && a.end <= b.begin;
      const bool is_after = b.end.is_set() && b.end <= a.begin;
      const bool is_empty = a.begin == a.end || b.begin == b.end;
      EXPECT_TRUE(is_before || is_after || is_empty) << a.id << " and " << b.id;
    }
  }
}

TEST(PriceBook, HasNoPriceForATypeThatTheListLacks) {
  const PriceBook book = book_of({price_of("H100", 5'500'000)});
  EXPECT_EQ(per_hour(book, day(0)), 5'500'000);
  EXPECT_EQ(per_hour(book, day(0), {.type = "B200-180GB"}), std::nullopt);
  EXPECT_EQ(per_hour(book, day(0), {.type = "NVIDIA Unheard Of"}), std::nullopt);
}

TEST(PriceBook, TellsAFreeGpuFromOneWithoutAPrice) {
  EXPECT_EQ(per_hour(book_of({price_of("H100", 0)}), day(0)), 0);
}

TEST(PriceBook, HasTheTypeGoBeforeItsFamily) {
  const PriceBook book = book_of({price_of("H100-80GB", 6'000'000), price_of("H100", 5'500'000)});
  EXPECT_EQ(per_hour(book, day(0)), 6'000'000);
  EXPECT_EQ(per_hour(book, day(0), {.type = "H100-94GB"}), 5'500'000);
}

TEST(PriceBook, KnowsTypesThatTheCatalogueLacksByTheDriversName) {
  const PriceBook book = book_of({price_of("NVIDIA Quadro GV100", 1'000'000)});
  EXPECT_EQ(per_hour(book, day(0), {.type = "NVIDIA Quadro GV100"}), 1'000'000);
  EXPECT_EQ(per_hour(book, day(0), {.type = "nvidia quadro-gv100"}), 1'000'000);
}

TEST(PriceBook, DerivesThePriceOfSpotCapacity) {
  const PriceBook book = book_of({price_of("H100", 5'500'001)});
  EXPECT_EQ(per_hour(book, day(0), {.capacity = CapacityClass::kReserved}), 5'500'001);
  // 30 % of it is 1,650,000.3 millionths.
  EXPECT_EQ(per_hour(book, day(0), {.capacity = CapacityClass::kSpot}), 1'650'000);
  const PriceEntry* const spot = book.at("H100-80GB", CapacityClass::kSpot, "n", day(0));
  ASSERT_NE(spot, nullptr);
  EXPECT_EQ(spot->derived_from, 1U);
}

TEST(PriceBook, HasAPriceOfSpotCapacityGoBeforeADerivedOne) {
  Price spot = price_of("H100", 2'000'000);
  spot.capacity = CapacityClass::kSpot;
  // It goes before that of the type itself, too, which is derived.
  const PriceBook book = book_of({spot, price_of("H100-80GB", 5'500'000)});
  EXPECT_EQ(per_hour(book, day(0), {.capacity = CapacityClass::kSpot}), 2'000'000);
  EXPECT_EQ(per_hour(book, day(0)), 5'500'000);
}

TEST(PriceBook, DerivesNothingFromAPriceOfAClass) {
  Price on_demand = price_of("H100", 5'500'000);
  on_demand.capacity = CapacityClass::kOnDemand;
  const PriceBook book = book_of({on_demand});
  EXPECT_EQ(per_hour(book, day(0), {.capacity = CapacityClass::kSpot}), std::nullopt);
  EXPECT_EQ(per_hour(book, day(0), {.capacity = CapacityClass::kReserved}), std::nullopt);
}

TEST(PriceBook, HasThePriceOfANodeGoBeforeAllOthers) {
  Price on_nodes = price_of("H100", 4'000'000);
  on_nodes.node = "dgx-a*";
  Price of_class = price_of("H100-80GB", 6'000'000);
  of_class.capacity = CapacityClass::kOnDemand;
  const PriceBook book = book_of({on_nodes, of_class});
  EXPECT_EQ(per_hour(book, day(0), {.node = "dgx-a7"}), 4'000'000);
  EXPECT_EQ(per_hour(book, day(0), {.node = "dgx-b7"}), 6'000'000);
}

TEST(PriceBook, HasAPriceOfAllTypesGoAfterThoseOfSome) {
  const PriceBook book = book_of({price_of("", 1'000'000), price_of("H100", 5'500'000)});
  EXPECT_EQ(per_hour(book, day(0)), 5'500'000);
  EXPECT_EQ(per_hour(book, day(0), {.type = "NVIDIA Unheard Of"}), 1'000'000);
}

TEST(PriceBook, BeginsNoPriceBeforeItWasMadeKnown) {
  Price past = price_of("H100", 5'000'000);
  past.from = day(-10);
  const PriceBook book = book_of({past}, day(0));
  EXPECT_EQ(per_hour(book, day(-1)), std::nullopt);
  EXPECT_EQ(per_hour(book, day(0)), 5'000'000);
}

TEST(PriceBook, ChangesThePriceAtNewYear) {
  Price old_year = price_of("H100", 5'000'000);
  old_year.until = day(1);
  Price new_year = price_of("H100", 6'000'000);
  new_year.from = day(1);
  const PriceBook book = book_of({old_year, new_year});
  EXPECT_EQ(per_hour(book, day(0) + (base::hours(24) - base::milliseconds(1))), 5'000'000);
  EXPECT_EQ(per_hour(book, day(1)), 6'000'000);

  const std::vector<PriceSpan> spans =
      book.over("H100-80GB", CapacityClass::kOnDemand, "n", day(0), day(2));
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].from, day(0));
  EXPECT_EQ(spans[0].to, day(1));
  EXPECT_EQ(spans[0].entry->price, old_year);
  EXPECT_EQ(spans[1].from, day(1));
  EXPECT_EQ(spans[1].to, day(2));
  EXPECT_EQ(spans[1].entry->price, new_year);
}

TEST(PriceBook, SaysWhereThereIsAGap) {
  Price first = price_of("H100", 5'000'000);
  first.until = day(1);
  Price second = price_of("H100", 6'000'000);
  second.from = day(3);
  const PriceBook book = book_of({first, second});
  const std::vector<PriceSpan> spans =
      book.over("H100-80GB", CapacityClass::kOnDemand, "n", day(0), day(4));
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[1].entry, nullptr);
  EXPECT_EQ(spans[1].from, day(1));
  EXPECT_EQ(spans[1].to, day(3));
}

TEST(PriceBook, HasOneSpanWhereNothingChangesAndNoneOfAnEmptyTime) {
  const PriceBook book = book_of({price_of("H100", 5'000'000), price_of("A100", 4'000'000)});
  const auto over = [&](const std::string& type, Instant from, Instant to) {
    return book.over(type, CapacityClass::kOnDemand, "n", from, to).size();
  };
  EXPECT_EQ(over("H100-80GB", day(0), day(9)), 1U);
  EXPECT_EQ(over("T4-16GB", day(0), day(9)), 1U);
  EXPECT_EQ(over("H100-80GB", day(1), day(1)), 0U);
  EXPECT_EQ(over("H100-80GB", day(2), day(1)), 0U);
}

TEST(PriceBook, TakesTheFirstOfPricesThatOverlap) {
  const PriceBook book = book_of({price_of("H100", 5'000'000), price_of("H100", 6'000'000)});
  EXPECT_EQ(per_hour(book, day(0)), 5'000'000);
  expect_sound(book);
}

TEST(PriceBook, KeepsWhatTheConfigurationKeeps) {
  PriceBook book = book_of({price_of("H100", 5'000'000), price_of("A100", 4'000'000)});
  const PriceBook before = book;
  book.follow(billing_of({price_of("H100", 5'000'000), price_of("A100", 4'000'000)}), day(3));
  EXPECT_EQ(book, before);
}

TEST(PriceBook, FollowsTheConfiguration) {
  PriceBook book = book_of({price_of("H100", 5'000'000), price_of("A100", 4'000'000)});
  book.follow(billing_of({price_of("H100", 6'000'000)}), day(1));
  EXPECT_EQ(per_hour(book, day(0)), 5'000'000);
  EXPECT_EQ(per_hour(book, day(1)), 6'000'000);
  EXPECT_EQ(per_hour(book, day(0), {.type = "A100-40GB"}), 4'000'000);
  EXPECT_EQ(per_hour(book, day(1), {.type = "A100-40GB"}), std::nullopt);
  EXPECT_EQ(per_hour(book, day(1), {.capacity = CapacityClass::kSpot}), 1'800'000);
  expect_sound(book);
}

TEST(PriceBook, BeginsAPriceAnewThatTheConfigurationHasAgain) {
  PriceBook book = book_of({price_of("H100", 5'000'000)});
  book.follow(billing_of({}), day(1));
  book.follow(billing_of({price_of("H100", 5'000'000)}), day(2));
  EXPECT_EQ(per_hour(book, day(1)), std::nullopt);
  EXPECT_EQ(per_hour(book, day(2)), 5'000'000);
  expect_sound(book);
}

TEST(PriceBook, ChangesDerivedPricesWithTheDiscount) {
  PriceBook book = book_of({price_of("H100", 5'000'000)});
  book.follow(billing_of({price_of("H100", 5'000'000)}, 50), day(1));
  const Gpu spot = {.capacity = CapacityClass::kSpot};
  EXPECT_EQ(per_hour(book, day(0), spot), 1'500'000);
  EXPECT_EQ(per_hour(book, day(1), spot), 2'500'000);
  const PriceEntry* const on_demand = book.at("H100-80GB", CapacityClass::kOnDemand, "n", day(1));
  ASSERT_NE(on_demand, nullptr);
  EXPECT_EQ(on_demand->id, 1U);
  expect_sound(book);
}

TEST(PriceBook, HasAPriceThatIsSetEndOthersInItsTime) {
  PriceBook book = book_of({price_of("H100", 5'000'000)});
  Price december = price_of("H100", 3'000'000);
  december.from = day(2);
  december.until = day(4);
  book.set(december, "ann", day(1));
  EXPECT_EQ(per_hour(book, day(1)), 5'000'000);
  EXPECT_EQ(per_hour(book, day(2)), 3'000'000);
  EXPECT_EQ(per_hour(book, day(3), {.capacity = CapacityClass::kSpot}), 900'000);
  EXPECT_EQ(per_hour(book, day(4)), 5'000'000);
  EXPECT_EQ(per_hour(book, day(4), {.capacity = CapacityClass::kSpot}), 1'500'000);
  expect_sound(book);
}

TEST(PriceBook, LeavesPricesOfOtherClassesAndNodesAlone) {
  Price spot = price_of("H100", 2'000'000);
  spot.capacity = CapacityClass::kSpot;
  PriceBook book = book_of({price_of("H100", 5'000'000), spot});
  book.set(price_of("H100", 6'000'000), "ann", day(1));
  EXPECT_EQ(per_hour(book, day(1)), 6'000'000);
  EXPECT_EQ(per_hour(book, day(1), {.capacity = CapacityClass::kSpot}), 2'000'000);
  expect_sound(book);
}

TEST(PriceBook, SetsNoPriceInThePast) {
  PriceBook book = book_of({price_of("H100", 5'000'000)});
  Price early = price_of("H100", 1'000'000);
  early.from = day(-5);
  book.set(early, "ann", day(3));
  EXPECT_EQ(per_hour(book, day(2)), 5'000'000);
  EXPECT_EQ(per_hour(book, day(3)), 1'000'000);
}

TEST(PriceBook, KeepsAPriceThatWasSetWhenTheConfigurationChanges) {
  PriceBook book = book_of({price_of("H100", 5'000'000)});
  book.set(price_of("H100", 3'000'000), "ann", day(1));
  book.follow(billing_of({price_of("H100", 7'000'000)}), day(2));
  EXPECT_EQ(per_hour(book, day(2)), 3'000'000);
  expect_sound(book);
}

TEST(PriceBook, CountsThePriceOfTheListWhenOneThatWasSetIsWithdrawn) {
  PriceBook book = book_of({price_of("H100", 5'000'000)});
  book.set(price_of("H100", 3'000'000), "ann", day(1));
  book.follow(billing_of({price_of("H100", 7'000'000)}), day(2));
  const std::uint32_t id = book.at("H100-80GB", CapacityClass::kOnDemand, "n", day(2))->id;
  EXPECT_TRUE(book.withdraw(id, day(3)));
  EXPECT_EQ(per_hour(book, day(2)), 3'000'000);
  EXPECT_EQ(per_hour(book, day(3)), 7'000'000);
  EXPECT_EQ(per_hour(book, day(3), {.capacity = CapacityClass::kSpot}), 2'100'000);
  EXPECT_FALSE(book.withdraw(id, day(4)));
  expect_sound(book);
}

TEST(PriceBook, LeavesAGapWhereAPriceOfTheListIsWithdrawn) {
  PriceBook book = book_of({price_of("H100", 5'000'000)});
  EXPECT_TRUE(book.withdraw(1, day(1)));
  EXPECT_EQ(per_hour(book, day(0)), 5'000'000);
  EXPECT_EQ(per_hour(book, day(1)), std::nullopt);
  EXPECT_EQ(per_hour(book, day(1), {.capacity = CapacityClass::kSpot}), std::nullopt);
  // The next reload brings it back only if it is another one.
  book.follow(billing_of({price_of("H100", 5'000'000)}), day(2));
  EXPECT_EQ(per_hour(book, day(2)), std::nullopt);
  book.follow(billing_of({price_of("H100", 5'100'000)}), day(3));
  EXPECT_EQ(per_hour(book, day(3)), 5'100'000);
}

TEST(PriceBook, WithdrawsAPriceBeforeItsBegin) {
  PriceBook book = book_of({price_of("H100", 5'000'000)});
  Price later = price_of("H100", 3'000'000);
  later.from = day(5);
  book.set(later, "ann", day(1));
  const std::uint32_t id = book.at("H100-80GB", CapacityClass::kOnDemand, "n", day(5))->id;
  EXPECT_TRUE(book.withdraw(id, day(2)));
  EXPECT_EQ(per_hour(book, day(5)), 5'000'000);
  EXPECT_EQ(book.find(id)->begin, book.find(id)->end);
  EXPECT_FALSE(book.withdraw(id, day(3)));
  expect_sound(book);
}

TEST(PriceBook, WithdrawsNoPriceThatIsNotThere) {
  PriceBook book = book_of({price_of("H100", 5'000'000)});
  EXPECT_FALSE(book.withdraw(0, day(1)));
  EXPECT_FALSE(book.withdraw(3, day(1)));
  EXPECT_EQ(book.find(0), nullptr);
  EXPECT_EQ(book.find(3), nullptr);
}

TEST(PriceBook, CountsTheLastOfTwoChangesInOneMillisecond) {
  PriceBook book = book_of({price_of("H100", 5'000'000)});
  const Instant at = day(1) + base::microseconds(100);
  book.set(price_of("H100", 3'000'000), "ann", at);
  book.set(price_of("H100", 4'000'000), "ann", at + base::microseconds(500));
  EXPECT_EQ(per_hour(book, at), 4'000'000);
  const std::vector<PriceSpan> spans =
      book.over("H100-80GB", CapacityClass::kOnDemand, "n", day(0), day(2));
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].to, day(1));
  EXPECT_EQ(spans[1].entry->price.per_hour, MicroUsd(4'000'000));
  expect_sound(book);
}

TEST(PriceBook, StaysTheSameWhenItIsStored) {
  PriceBook book = book_of({price_of("H100", 5'000'000)});
  book.set(price_of("A100", 3'000'000), "ann", day(1));
  std::string bytes;
  append_price_book(book, bytes);
  const auto decoded = decode_price_book(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, book);
}

TEST(DefaultPrices, AreThoseOfFamiliesOfTheCatalogue) {
  const PriceBook book = book_of(default_prices());
  EXPECT_EQ(per_hour(book, day(0)), 5'500'000);
  EXPECT_EQ(per_hour(book, day(0), {.type = "A100-80GB"}), 4'100'000);
  EXPECT_EQ(per_hour(book, day(0), {.type = "L40S-48GB"}), 2'200'000);
  EXPECT_EQ(per_hour(book, day(0), {.type = "A10G-24GB"}), 1'100'000);
  EXPECT_EQ(per_hour(book, day(0), {.type = "T4-16GB"}), 526'000);
  EXPECT_EQ(per_hour(book, day(0), {.type = "V100-16GB"}), 3'000'000);
  EXPECT_EQ(per_hour(book, day(0), {.type = "L40-48GB"}), std::nullopt);
  EXPECT_EQ(per_hour(book, day(0), {.type = "A10-24GB"}), std::nullopt);
}

}  // namespace
}  // namespace gpu_platform::model
