#pragma once

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "store/ledger.h"
#include "store/ledger_codec.h"
#include "store/store.h"
#include "store/test_support.h"

// Lines of the ledger for the tests of stores.

namespace gpu_platform::store {

inline constexpr model::Millis kLedgerEpoch = 1'700'000'000'000;

// Numbers of names, as a store keeps them.
class NumberedNames {
 public:
  NumberOfName number_of() {
    return [this](std::string_view name) -> base::Result<std::uint64_t> {
      return numbers_.emplace(name, numbers_.size() + 1).first->second;
    };
  }
  NameOfNumber name_of() const {
    return [this](std::uint64_t wanted) -> base::Result<std::string_view> {
      for (const auto& [name, number] : numbers_) {
        if (number == wanted) return std::string_view(name);
      }
      return base::fail(base::ErrorCode::kDataLoss, "no name has that number");
    };
  }

 private:
  std::map<std::string, std::uint64_t, std::less<>> numbers_;
};

struct LinesOf {
  std::uint64_t attempt = 1;  // of a job with that id
  std::uint32_t gpus = 1;
  std::string user = "ann";
  model::Millis from = kLedgerEpoch;
  model::Millis length = 3'600'000;
};

// A typical attempt on GPUs of one node.
inline std::vector<model::LedgerLine> held_lines(const LinesOf& of) {
  std::vector<model::LedgerLine> lines(of.gpus);
  for (std::uint32_t gpu = 0; gpu < of.gpus; ++gpu) {
    model::LedgerLine& line = lines[gpu];
    line.kind = model::LedgerKind::kHeld;
    line.node = "dgx-a1";
    line.gpu_uuid = fmt::format("GPU-3f2504e0-4f89-11d3-9a0c-0305e82c330{}", gpu);
    line.gpu_type = "H100";
    line.share = base::kWholeGpu;
    line.price = 2;
    line.from = of.from;
    line.started = of.from + of.length / 100;
    line.ended = of.from + of.length - of.length / 100;
    line.to = of.from + of.length;
    line.attempt = {model::JobId(of.attempt), 1};
    line.user = of.user;
    line.team = "vision";
    line.project = "perception";
    line.job_name = fmt::format("train-{}", of.attempt);
    line.labels = {{"model", "resnet50"}, {"stage", "train"}};
    line.discount = 1'000;
  }
  return lines;
}

// The same GPUs while no attempt holds them.
inline std::vector<model::LedgerLine> rest_lines(const LinesOf& of) {
  std::vector<model::LedgerLine> lines = held_lines(of);
  for (model::LedgerLine& line : lines) {
    const model::LedgerLine held = line;
    line = {};
    line.node = held.node;
    line.gpu_uuid = held.gpu_uuid;
    line.gpu_type = held.gpu_type;
    line.share = held.share;
    line.price = held.price;
    line.from = held.from;
    line.to = held.to;
  }
  return lines;
}

// Lines of few users and times, so that every query finds some and misses some.
inline std::vector<model::LedgerLine> random_lines(std::uint64_t seq, base::Prng& prng) {
  std::vector<model::LedgerLine> lines;
  for (std::uint64_t left = prng.below(4); left > 0; --left) {
    const LinesOf of{.attempt = seq,
                     .gpus = static_cast<std::uint32_t>(1 + prng.below(3)),
                     .user = "user" + std::to_string(prng.below(4)),
                     .from = static_cast<model::Millis>(prng.below(1'000)),
                     .length = static_cast<model::Millis>(prng.below(4) * prng.below(300))};
    std::vector<model::LedgerLine> more = prng.chance(1, 2) ? held_lines(of) : rest_lines(of);
    if (prng.chance(1, 5)) {
      more.resize(1);
      more.front() = {};
      more.front().kind = model::LedgerKind::kCorrection;
      more.front().from = of.from;
      more.front().user = prng.chance(1, 3) ? "" : of.user;
      more.front().amount = base::MicroUsd(-5);
      more.front().text = "goodwill";
    }
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

inline LedgerQuery random_ledger_query(base::Prng& prng, std::uint64_t last_seq) {
  LedgerQuery query;
  query.from = static_cast<model::Millis>(prng.below(1'200));
  query.to = query.from + static_cast<model::Millis>(prng.below(400));
  if (prng.chance(1, 5)) query = {.from = 0, .to = 1'000'000};
  if (prng.chance(1, 2)) query.user = "user" + std::to_string(prng.below(5));
  if (prng.chance(1, 4)) query.upto = model::EventSeq(1 + prng.below(last_seq));
  return query;
}

inline std::vector<model::LedgerLine> lines_of(const Ledger& ledger, const LedgerQuery& query) {
  std::vector<model::LedgerLine> lines;
  const base::Status read = ledger.visit(query, [&](const model::LedgerLine& line) {
    lines.push_back(line);
    return base::Status{};
  });
  EXPECT_TRUE(read) << read.error().message;
  return lines;
}

// Every line there is.
inline std::vector<model::LedgerLine> all_lines(const Ledger& ledger) {
  return lines_of(ledger, {.from = INT64_MIN, .to = INT64_MAX});
}

}  // namespace gpu_platform::store
