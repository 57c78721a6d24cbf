#include "store/ledger_codec.h"

#include <gtest/gtest.h>

#include "model/testing/random_value.h"
#include "store/ledger_fixture.h"

namespace gpu_platform::store {
namespace {

using model::LedgerKind;
using model::LedgerLine;

std::string encoded(const std::vector<LedgerLine>& lines, NumberedNames& names) {
  const auto payload = encode_lines(lines, names.number_of());
  EXPECT_TRUE(payload) << payload.error().message;
  return payload ? *payload : std::string();
}

// All lines; nothing when they cannot be read.
std::optional<std::vector<LedgerLine>> decoded(std::string_view payload, std::uint64_t count,
                                               const NumberedNames& names) {
  std::vector<LedgerLine> lines;
  const base::Status read = visit_lines(payload, count, names.name_of(), [&](const auto& line) {
    lines.push_back(line);
    return base::Status{};
  });
  return read ? std::optional(std::move(lines)) : std::nullopt;
}

TEST(LedgerCodec, AnyLinesComeBackAsTheyWere) {
  base::Prng prng(38);
  NumberedNames names;
  for (int round = 0; round < 300; ++round) {
    std::vector<LedgerLine> lines(prng.below(12));
    for (LedgerLine& line : lines) {
      // Most members repeat in practice; here half of the lines are another line but for its kind.
      const bool repeats = &line != &lines.front() && prng.chance(1, 2);
      line = repeats ? *(&line - 1) : model::testing::drawn<LedgerLine>(prng);
      if (repeats) model::testing::draw(prng, line.kind);
    }
    const std::string payload = encoded(lines, names);
    ASSERT_EQ(decoded(payload, lines.size(), names), lines) << "round " << round;
    EXPECT_FALSE(decoded(payload, lines.size() + 1, names));
    if (lines.empty()) continue;
    EXPECT_FALSE(decoded(payload, lines.size() - 1, names));
  }
}

TEST(LedgerCodec, BytesThatWereCutOffAreNotRead) {
  NumberedNames names;
  const std::vector<LedgerLine> lines = held_lines({.attempt = 7, .gpus = 8});
  const std::string payload = encoded(lines, names);
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(decoded(payload.substr(0, size), lines.size(), names)) << size;
  }
}

TEST(LedgerCodec, AnyBytesAreReadOrRefused) {
  base::Prng prng(39);
  NumberedNames names;
  const std::vector<LedgerLine> lines = held_lines({.attempt = 7, .gpus = 3});
  const std::string payload = encoded(lines, names);
  for (int round = 0; round < 2'000; ++round) {
    std::string damaged = payload;
    damaged[prng.below(damaged.size())] = static_cast<char>(prng.below(256));
    const auto read = decoded(damaged, lines.size(), names);
    EXPECT_EQ(read.value_or(lines).size(), 3u);
  }
}

TEST(LedgerCodec, ANameWithoutANumberIsDamage) {
  NumberedNames names;
  const std::string payload = encoded(held_lines({.attempt = 1, .gpus = 1}), names);
  EXPECT_FALSE(decoded(payload, 1, NumberedNames()));
}

TEST(LedgerCodec, AFailureToNumberANameIsPassedOn) {
  const auto lines = held_lines({.attempt = 1, .gpus = 1});
  const auto payload = encode_lines(lines, [](std::string_view) -> base::Result<std::uint64_t> {
    return base::fail(base::ErrorCode::kResourceExhausted, "full");
  });
  ASSERT_FALSE(payload);
  EXPECT_EQ(payload.error().code, base::ErrorCode::kResourceExhausted);
}

// The goal is 80 bytes a line with everything around it, for a hundred million lines.
TEST(LedgerCodec, TheGpusOfAnAttemptTakeFewBytes) {
  NumberedNames names;
  std::vector<LedgerLine> lines = held_lines({.attempt = 123'456, .gpus = 8});
  EXPECT_LT(encoded(lines, names).size(), 8 * 20u);
  lines = rest_lines({.gpus = 8});
  EXPECT_LT(encoded(lines, names).size(), 8 * 6u);
}

}  // namespace
}  // namespace gpu_platform::store
