#include "accounting/balance.h"

#include <gtest/gtest.h>

#include "accounting/testing/ledger_lines.h"

namespace gpu_platform::accounting {
namespace {

using testing::kHourMs;
using testing::kOctober;

constexpr Span kDaySpan = {kOctober, kOctober + 24 * kHourMs};

BalanceReport balanced(const std::vector<model::LedgerLine>& lines) {
  const model::PriceBook prices = testing::two_prices();
  Balance balance(kDaySpan, prices);
  for (const model::LedgerLine& line : lines) balance.add(line);
  return balance.report();
}

TEST(Balance, HoldsWhereLinesFollowEachOther) {
  model::LedgerLine half = testing::used_line("vision", kOctober + kHourMs, kOctober + 3 * kHourMs);
  half.share = base::GpuShare(3500);
  half.started += 1;
  half.ended -= 1;
  half.discount = 3'333;
  model::LedgerLine idle_half =
      testing::rest_line(model::RestKind::kIdle, kOctober + kHourMs, kOctober + 3 * kHourMs);
  idle_half.share = base::GpuShare(3500);
  const BalanceReport report =
      balanced({testing::rest_line(model::RestKind::kIdle, kOctober - kHourMs, kOctober + kHourMs),
                half, idle_half});
  EXPECT_TRUE(report.balances());
  EXPECT_EQ(report.gpus, 1U);
  EXPECT_TRUE(report.wall == __int128{7000} * 3 * kHourMs);
  EXPECT_EQ(report.fleet.rounded(), base::MicroUsd(12'000'000));
}

TEST(Balance, NamesAGpuThatHasMoreThanOneWhole) {
  const BalanceReport report = balanced(
      {testing::used_line("vision", kOctober, kOctober + 2 * kHourMs),
       testing::rest_line(model::RestKind::kIdle, kOctober + kHourMs, kOctober + 2 * kHourMs)});
  ASSERT_FALSE(report.balances());
  EXPECT_EQ(report.differences.named.front(),
            "GPU-1 on dgx-1 has lines for 14000/7000 of it from 2026-10-01T01:00:00.000Z to "
            "2026-10-01T02:00:00.000Z.");
}

TEST(Balance, NamesTheWholeTimeInWhichAPartIsMissing) {
  model::LedgerLine first = testing::used_line("vision", kOctober, kOctober + kHourMs);
  model::LedgerLine second =
      testing::used_line("vision", kOctober + kHourMs, kOctober + 2 * kHourMs);
  first.share = second.share = base::GpuShare(3500);
  const BalanceReport report = balanced({first, second});
  ASSERT_FALSE(report.balances());
  EXPECT_EQ(report.differences.named.front(),
            "GPU-1 on dgx-1 has lines for 3500/7000 of it from 2026-10-01T00:00:00.000Z to "
            "2026-10-01T02:00:00.000Z.");
  EXPECT_TRUE(report.wall == __int128{7000} * 2 * kHourMs);
}

TEST(Balance, CountsAGpuThatWasMovedOnBothNodes) {
  model::LedgerLine elsewhere =
      testing::used_line("vision", kOctober + kHourMs, kOctober + 2 * kHourMs);
  elsewhere.node = "dgx-2";
  const BalanceReport report = balanced(
      {testing::rest_line(model::RestKind::kOffline, kOctober, kOctober + 2 * kHourMs), elsewhere});
  EXPECT_TRUE(report.balances());
  EXPECT_EQ(report.gpus, 2U);
  EXPECT_TRUE(report.wall == __int128{7000} * 3 * kHourMs);
}

TEST(Balance, TellsWhereAGpuWasAway) {
  const BalanceReport report =
      balanced({testing::used_line("vision", kOctober, kOctober + kHourMs),
                testing::used_line("vision", kOctober + 2 * kHourMs, kOctober + 3 * kHourMs)});
  EXPECT_TRUE(report.balances());
  ASSERT_EQ(report.absences.named.size(), 1U);
  EXPECT_NE(report.absences.named.front().find("0/7000"), std::string::npos);
}

TEST(Balance, NamesDamagedLines) {
  model::LedgerLine line = testing::used_line("vision", kOctober, kOctober + kHourMs);
  line.price = 3;
  EXPECT_EQ(balanced({line}).differences.named.front(),
            "The line of GPU-1 at 2026-10-01T00:00:00.000Z is damaged: its price 3 is not known.");
  line.price = 1;
  line.ended = line.started - 1;
  EXPECT_FALSE(balanced({line}).balances());
  line = testing::used_line("vision", kOctober, kOctober + kHourMs);
  line.share = base::GpuShare(7001);
  EXPECT_FALSE(balanced({line}).balances());
}

TEST(Balance, LeavesOutWhatIsNoGpu) {
  model::LedgerLine cpus = testing::used_line("vision", kOctober, kOctober + kHourMs);
  cpus.gpu_uuid.clear();
  const BalanceReport report =
      balanced({cpus, testing::correction_line("vision", kOctober, 1'000'000)});
  EXPECT_TRUE(report.balances());
  EXPECT_EQ(report.gpus, 0U);
  EXPECT_EQ(report.figures, UsageFigures());
}

}  // namespace
}  // namespace gpu_platform::accounting
