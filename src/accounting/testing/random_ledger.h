#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "accounting/usage_sum.h"
#include "base/month.h"
#include "base/prng.h"
#include "model/ledger.h"
#include "model/price.h"

// A random history of a few GPUs, the lines that it makes, and its figures by another way: moment
// by moment from the history, never from its lines.

namespace gpu_platform::accounting::testing {

using model::Millis;

struct HistoryGpu {
  std::string uuid;
  std::string node;
  std::string type;
  Millis seen = 0;
  std::vector<std::pair<Millis, model::RestKind>> kinds;  // ascending; the first is at `seen`
};

struct HistoryAttempt {
  model::LedgerLine what;  // its owner, and how it is billed; without times and a price
  std::optional<std::size_t> gpu;
  Millis requested = 0;
  Millis started = 0;
  Millis ended = 0;
  Millis released = 0;
};

// Of a type, from a moment on; absent: there is none.
struct HistoryPrice {
  std::string type;
  Millis from = 0;
  std::optional<std::int64_t> per_hour;
};

struct History {
  Millis begin = 0;
  Millis end = 0;
  std::vector<HistoryGpu> gpus;
  std::vector<HistoryAttempt> attempts;
  std::vector<HistoryPrice> prices;  // ascending
  std::vector<model::LedgerLine> corrections;
};

inline std::string drawn_name(base::Prng& random, std::string_view kind, std::uint64_t count) {
  return std::string(kind) + std::to_string(random.below(count));
}

inline Millis drawn_time(base::Prng& random, Millis from, Millis to) {
  return from + static_cast<Millis>(random.below(static_cast<std::uint64_t>(to - from) + 1));
}

inline std::int64_t held_at(const History& history, std::size_t gpu, Millis at) {
  std::int64_t held = 0;
  for (const HistoryAttempt& attempt : history.attempts) {
    const bool holds = attempt.gpu == gpu && attempt.requested <= at && at < attempt.released;
    if (holds) held += attempt.what.share.value();
  }
  return held;
}

// A part that begins where others end, or at any time, and never takes more than there is.
inline bool fits(const History& history, const HistoryAttempt& attempt) {
  const auto free_at = [&](Millis at) {
    return at < attempt.requested || at >= attempt.released ||
           held_at(history, *attempt.gpu, at) + attempt.what.share.value() <=
               base::kWholeGpu.value();
  };
  return free_at(attempt.requested) &&
         std::ranges::all_of(history.attempts,
                             [&](const HistoryAttempt& other) { return free_at(other.requested); });
}

inline void draw_attempt(base::Prng& random, History& history) {
  constexpr std::array<std::int64_t, 5> kShares = {7000, 7000, 3500, 1000, 7};
  HistoryAttempt attempt;
  model::LedgerLine& what = attempt.what;
  what.kind = model::LedgerKind::kHeld;
  what.attempt = {model::JobId(1 + random.below(12)), 1};
  what.user = drawn_name(random, "user", 3);
  what.team = drawn_name(random, "team", 3);
  what.project = drawn_name(random, "project", 2);
  what.priority = static_cast<model::PriorityClass>(random.below(4));
  what.job_kind = static_cast<model::JobKind>(random.below(4));
  if (random.chance(1, 2)) what.labels = {{"run", drawn_name(random, "run", 2)}};
  if (random.chance(1, 3)) what.discount = static_cast<std::uint32_t>(random.below(10'001));
  if (random.chance(1, 3)) {
    what.not_billed = static_cast<model::NotBilled>(random.below(model::kNotBilledReasons));
  }
  std::array<Millis, 4> times{};
  for (Millis& time : times) time = drawn_time(random, history.begin, history.end);
  if (random.chance(1, 5)) times[1] = times[2] = times[3];  // never started
  std::ranges::sort(times);
  attempt.requested = times[0];
  attempt.started = times[1];
  attempt.ended = times[2];
  attempt.released = times[3];
  if (random.chance(1, 6)) {
    what.node = "cpu-node";
    what.cpus = static_cast<std::uint32_t>(random.below(64));
    what.memory_mib = static_cast<std::int64_t>(random.below(1 << 20));
    what.core_hour = base::MicroUsd(static_cast<std::int64_t>(random.below(50'000)));
    what.gib_hour = base::MicroUsd(static_cast<std::int64_t>(random.below(5'000)));
    history.attempts.push_back(attempt);
    return;
  }
  attempt.gpu = random.below(history.gpus.size());
  const HistoryGpu& gpu = history.gpus[*attempt.gpu];
  what.node = gpu.node;
  what.gpu_uuid = gpu.uuid;
  what.gpu_type = gpu.type;
  what.share = base::GpuShare(kShares[random.below(kShares.size())]);
  if (attempt.requested >= gpu.seen && fits(history, attempt)) history.attempts.push_back(attempt);
}

inline History draw_history(base::Prng& random) {
  constexpr std::array<Millis, 4> kLengths = {50, 4 * 3'600'000, 5 * 24 * 3'600'000LL,
                                              100 * 24 * 3'600'000LL};
  // Some milliseconds before a new year, a leap day's end, or any time.
  constexpr std::array<Millis, 3> kBegins = {1'798'761'599'990, 1'835'481'599'000,
                                             1'790'000'123'456};
  History history;
  history.begin = kBegins[random.below(kBegins.size())];
  history.end = history.begin + kLengths[random.below(kLengths.size())];
  for (std::uint64_t i = 0, count = 1 + random.below(2); i < count; ++i) {
    HistoryGpu gpu{.uuid = "GPU-" + std::to_string(i),
                   .node = drawn_name(random, "node", 2),
                   .type = drawn_name(random, "type", 2)};
    gpu.seen = random.chance(1, 3) ? drawn_time(random, history.begin, history.end) : history.begin;
    gpu.kinds.emplace_back(gpu.seen, model::RestKind::kIdle);
    for (std::uint64_t k = random.below(3); k > 0; --k) {
      gpu.kinds.emplace_back(drawn_time(random, gpu.seen, history.end),
                             static_cast<model::RestKind>(random.below(model::kRestKinds)));
    }
    std::ranges::stable_sort(gpu.kinds, {}, &std::pair<Millis, model::RestKind>::first);
    history.gpus.push_back(gpu);
  }
  for (std::uint64_t i = random.below(4); i > 0; --i) {
    HistoryPrice price{.type = drawn_name(random, "type", 2),
                       .from = drawn_time(random, history.begin, history.end)};
    if (random.chance(5, 6)) {
      price.per_hour = static_cast<std::int64_t>(random.below(100'000'000));
    }
    history.prices.push_back(price);
  }
  std::ranges::stable_sort(history.prices, {}, &HistoryPrice::from);
  for (std::uint64_t i = random.below(8); i > 0; --i) draw_attempt(random, history);
  for (std::uint64_t i = random.below(2); i > 0; --i) {
    model::LedgerLine line;
    line.kind = model::LedgerKind::kCorrection;
    line.from = line.started = line.ended = line.to =
        drawn_time(random, history.begin, history.end);
    line.team = drawn_name(random, "team", 3);
    line.user = drawn_name(random, "user", 3);
    line.amount = base::MicroUsd(static_cast<std::int64_t>(random.below(2'000'000)) - 1'000'000);
    history.corrections.push_back(line);
  }
  return history;
}

// 0: none. Else the place of the price in the history, from 1, which is its id in the book.
inline std::uint32_t price_at(const History& history, std::string_view type, Millis at) {
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < history.prices.size(); ++i) {
    const HistoryPrice& price = history.prices[i];
    if (price.type == type && price.from <= at) found = price.per_hour ? i + 1 : 0;
  }
  return found;
}

inline model::PriceBook book_of(const History& history) {
  model::PriceBook book;
  for (std::uint32_t i = 0; i < history.prices.size(); ++i) {
    const HistoryPrice& price = history.prices[i];
    model::PriceEntry& entry = book.entries.emplace_back();
    entry.id = i + 1;
    entry.price.gpu_type = price.type;
    entry.price.per_hour = base::MicroUsd(price.per_hour.value_or(0));
  }
  return book;
}

// All moments at which something changes, ascending, each once.
inline std::vector<Millis> changes_of(const History& history) {
  std::vector<Millis> times = {history.begin, history.end};
  for (const HistoryGpu& gpu : history.gpus) {
    for (const auto& [at, kind] : gpu.kinds) times.push_back(at);
  }
  for (const HistoryAttempt& each : history.attempts) {
    times.insert(times.end(), {each.requested, each.started, each.ended, each.released});
  }
  for (const HistoryPrice& price : history.prices) times.push_back(price.from);
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

inline model::RestKind kind_at(const HistoryGpu& gpu, Millis at) {
  model::RestKind found = model::RestKind::kIdle;
  for (const auto& [from, kind] : gpu.kinds) {
    if (from <= at) found = kind;
  }
  return found;
}

// An attempt has a line for each price, a GPU one for each time in which nothing changes.
inline std::vector<model::LedgerLine> lines_of(const History& history) {
  std::vector<model::LedgerLine> lines = history.corrections;
  const std::vector<Millis> changes = changes_of(history);
  for (const HistoryAttempt& attempt : history.attempts) {
    std::vector<Millis> cuts = {attempt.requested, attempt.released};
    for (const HistoryPrice& price : history.prices) {
      if (price.type != attempt.what.gpu_type) continue;
      if (attempt.requested < price.from && price.from < attempt.released) {
        cuts.push_back(price.from);
      }
    }
    std::ranges::sort(cuts);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (cuts[i] == cuts[i + 1]) continue;
      model::LedgerLine line = attempt.what;
      line.from = cuts[i];
      line.to = cuts[i + 1];
      line.started = std::clamp(attempt.started, line.from, line.to);
      line.ended = std::clamp(attempt.ended, line.from, line.to);
      line.price = price_at(history, line.gpu_type, line.from);
      lines.push_back(line);
    }
  }
  for (std::size_t g = 0; g < history.gpus.size(); ++g) {
    const HistoryGpu& gpu = history.gpus[g];
    for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
      if (changes[i] < gpu.seen) continue;
      model::LedgerLine line;
      line.kind = model::LedgerKind::kRest;
      line.node = gpu.node;
      line.gpu_uuid = gpu.uuid;
      line.gpu_type = gpu.type;
      line.share = base::kWholeGpu - base::GpuShare(held_at(history, g, changes[i]));
      line.from = changes[i];
      line.started = line.ended = line.to = changes[i + 1];
      line.rest = kind_at(gpu, line.from);
      line.price = price_at(history, line.gpu_type, line.from);
      if (line.share > base::GpuShare()) lines.push_back(line);
    }
  }
  return lines;
}

// ---- the other way

// Money of a share for a time, with what is charged of 10,000 basis points.
inline ExactCost plain_cost(std::int64_t share, Millis length, std::int64_t per_hour,
                            std::int64_t charged) {
  return ExactCost(static_cast<__int128>(share) * length * per_hour * charged * 1024);
}

inline void add_plainly(const History& history, std::string_view type, std::int64_t share,
                        Span span, GpuTime& to) {
  const __int128 time = static_cast<__int128>(share) * (span.to - span.from);
  const std::uint32_t price = price_at(history, type, span.from);
  to.time += time;
  if (price == 0) {
    to.unpriced += time;
  } else {
    to.list += plain_cost(share, span.to - span.from, *history.prices[price - 1].per_hour, 10'000);
  }
}

inline void add_cpus_plainly(const model::LedgerLine& what, Millis length, UsageFigures& to) {
  const bool is_billed = what.not_billed == model::NotBilled::kBilled;
  CpuTime& cpu = is_billed ? to.cpu : to.cpu_not_billed;
  const __int128 per_hour = static_cast<__int128>(what.cpus) * what.core_hour.value() * 1024 +
                            static_cast<__int128>(what.memory_mib) * what.gib_hour.value();
  cpu.core_ms += static_cast<__int128>(what.cpus) * length;
  cpu.mib_ms += static_cast<__int128>(what.memory_mib) * length;
  cpu.list += ExactCost(per_hour * length * 7000 * 10'000);
  if (is_billed) to.cpu_discount += ExactCost(per_hour * length * 7000 * what.discount);
}

// Adds what the attempt has in a time in which nothing changes.
inline void add_attempt_plainly(const History& history, const HistoryAttempt& attempt, Span span,
                                UsageFigures& to) {
  const model::LedgerLine& what = attempt.what;
  const bool is_used = attempt.started <= span.from && span.from < attempt.ended;
  if (!attempt.gpu) {
    if (is_used) add_cpus_plainly(what, span.to - span.from, to);
    return;
  }
  GpuTime& part = is_used                       ? to.used[static_cast<std::size_t>(what.not_billed)]
                  : span.from < attempt.started ? to.starting
                                                : to.cleaning;
  add_plainly(history, what.gpu_type, what.share.value(), span, part);
  const std::uint32_t price = price_at(history, what.gpu_type, span.from);
  if (is_used && what.not_billed == model::NotBilled::kBilled && price != 0) {
    to.discount += plain_cost(what.share.value(), span.to - span.from,
                              *history.prices[price - 1].per_hour, what.discount);
  }
}

// What the history has in the span, of attempts and corrections that are wanted, and of GPUs that
// no attempt held. The number of lines stays zero.
inline UsageFigures plain_figures(const History& history, Span span,
                                  const std::function<bool(const model::LedgerLine&)>& is_wanted,
                                  bool with_rest) {
  UsageFigures figures;
  std::vector<Millis> times = changes_of(history);
  times.insert(times.end(), {span.from, span.to});
  std::ranges::sort(times);
  for (std::size_t i = 0; i + 1 < times.size(); ++i) {
    const Span part = {times[i], times[i + 1]};
    const bool is_empty = part.from == part.to;
    if (is_empty || part.from < span.from || part.to > span.to) continue;
    for (const HistoryAttempt& attempt : history.attempts) {
      const bool is_there = attempt.requested <= part.from && part.from < attempt.released;
      if (is_there && is_wanted(attempt.what)) add_attempt_plainly(history, attempt, part, figures);
    }
    for (std::size_t g = 0; with_rest && g < history.gpus.size(); ++g) {
      const HistoryGpu& gpu = history.gpus[g];
      const std::int64_t rest = 7000 - held_at(history, g, part.from);
      if (part.from < gpu.seen || part.from >= history.end || rest == 0) continue;
      figures.rest.resize(model::kRestKinds);
      add_plainly(history, gpu.type, rest, part,
                  figures.rest[static_cast<std::size_t>(kind_at(gpu, part.from))]);
    }
  }
  for (const model::LedgerLine& line : history.corrections) {
    const bool is_there = span.from <= line.from && line.from < span.to;
    if (is_there && is_wanted(line)) figures.corrections += ExactCost(line.amount);
  }
  return figures;
}

}  // namespace gpu_platform::accounting::testing
