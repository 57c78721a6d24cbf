// This program measures what the figures of a month with a million lines of the ledger cost: the
// monthly report with its balance, and the usage of each user and day.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "accounting/monthly.h"
#include "accounting/monthly_documents.h"
#include "base/prng.h"

namespace gpu_platform::accounting {
namespace {

constexpr base::Month kMonth{2026, 10};
constexpr model::Millis kBegin = 1'790'812'800'000;  // 2026-10-01T00:00:00Z
constexpr std::int64_t kGpus = 1000;
constexpr std::int64_t kLinesOfAGpu = 1000;
constexpr model::Millis kLineLength = 31LL * 24 * 3'600'000 / kLinesOfAGpu;

model::PriceBook one_price() {
  model::PriceBook book;
  book.entries.push_back({.id = 1, .price = {.per_hour = base::MicroUsd(4'100'000)}});
  return book;
}

// Each GPU has a line after another, of a job or of none.
model::LedgerLine drawn_line(std::int64_t number, base::Prng& random) {
  model::LedgerLine line;
  const std::int64_t gpu = number % kGpus;
  line.kind = random.chance(3, 4) ? model::LedgerKind::kHeld : model::LedgerKind::kRest;
  line.node = fmt::format("dgx-{}", gpu / 8);
  line.gpu_uuid = fmt::format("GPU-00000000-0000-0000-0000-{:012}", gpu);
  line.gpu_type = fmt::format("TYPE-{}", gpu % 6);
  line.share = base::kWholeGpu;
  line.price = 1;
  line.from = kBegin + number / kGpus * kLineLength;
  line.to = line.from + kLineLength;
  line.started = line.from + 3'000;
  line.ended = line.to - 2'000;
  if (line.kind == model::LedgerKind::kRest) return line;
  line.attempt = {model::JobId(static_cast<std::uint64_t>(number) + 1), 1};
  line.user = fmt::format("user-{}", random.below(500));
  line.team = fmt::format("team-{}", random.below(50));
  line.discount = 500;
  return line;
}

const std::vector<model::LedgerLine>& million_lines() {
  static const std::vector<model::LedgerLine> lines = [] {
    std::vector<model::LedgerLine> made;
    base::Prng random(20'261'129);
    for (std::int64_t i = 0; i < kGpus * kLinesOfAGpu; ++i) made.push_back(drawn_line(i, random));
    return made;
  }();
  return lines;
}

void MonthlyReportOfAMillionLines(benchmark::State& state) {
  const model::PriceBook prices = one_price();
  const std::vector<model::LedgerLine>& lines = million_lines();
  for (auto _ : state) {
    MonthlySum sum({.month = kMonth, .currency = "USD"}, prices);
    for (const model::LedgerLine& line : lines) sum.add(line);
    benchmark::DoNotOptimize(json_of(sum.report()));
  }
}
BENCHMARK(MonthlyReportOfAMillionLines)->Unit(benchmark::kMillisecond);

void UsageOfUsersAndDays(benchmark::State& state) {
  const model::PriceBook prices = one_price();
  const std::vector<model::LedgerLine>& lines = million_lines();
  UsageQuery query{.from = kBegin, .to = kBegin + kLineLength * kLinesOfAGpu};
  query.by = {{UsageField::kUser, {}}};
  query.step = UsageStep::kDay;
  for (auto _ : state) {
    UsageSum sum(query, prices);
    for (const model::LedgerLine& line : lines) sum.add(line);
    benchmark::DoNotOptimize(sum.groups());
  }
}
BENCHMARK(UsageOfUsersAndDays)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gpu_platform::accounting
