#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "health/judge_fixture.h"

namespace gpu_platform::health::testing {
namespace {

// 288 nodes of four GPUs, 168,924 XIDs 45, and ten real faults among them.
TEST(Storm, OfSymptomsTakesNothingOut) {
  const Rules rules = *Rules::make(Profile::kNvidia);
  CaseBook book;
  base::Prng random(45);
  std::set<std::string> faulty;
  for (int i = 0; i < 168'924; ++i) {
    const std::string node = "n" + std::to_string(random.below(288));
    const std::string gpu = node + ":" + std::to_string(random.below(4));
    Evidence piece = xid(45, after(base::milliseconds(1'000 * i)));
    book.add({node, gpu, "GB200"}, piece);
    if (i % 16'892 == 8'446) {
      book.add({node, gpu, "GB200"}, xid(i % 33'784 == 8'446 ? 95 : 48, piece.at));
      faulty.insert(gpu);
    }
  }
  EXPECT_EQ(faulty.size(), 10U);
  const std::vector<std::string> touched = book.take_touched();
  std::set<std::string> out;
  for (const std::string& gpu : book.gpus()) {
    if (takes_out(judge_gpu(book, book.key(gpu), rules, after(base::hours(48))).action)) {
      out.insert(gpu);
    }
    EXPECT_LE(book.of_gpu(gpu).size(), kMaxKept);
  }
  EXPECT_EQ(out, faulty);
}

Evidence random_piece(base::Prng& random) {
  constexpr std::uint32_t kXids[] = {13, 31, 43, 45, 48, 63, 74, 79, 94, 109, 119, 162, 163, 777};
  Evidence piece = piece_of(static_cast<EvidenceKind>(random.below(model::kEvidenceKinds)),
                            after(base::seconds(static_cast<std::int64_t>(random.below(90'000)))));
  if (piece.kind == EvidenceKind::kXid) piece.code = kXids[random.below(std::size(kXids))];
  if (piece.kind == EvidenceKind::kReset || piece.kind == EvidenceKind::kCheck ||
      piece.kind == EvidenceKind::kJobEnded || piece.kind == EvidenceKind::kRecoveryAction) {
    piece.code = static_cast<std::uint32_t>(random.below(3));
  }
  piece.value = static_cast<std::int64_t>(random.below(100)) - 10;
  piece.is_over = model::is_level(piece.kind) && random.below(2) == 0;
  if (random.below(2) == 0) {
    const auto job = random.below(6);
    piece = of_job(piece, 1 + job, job < 3 ? "ann" : "bob", job % 2 == 0 ? "train" : "infer");
  }
  if (piece.kind == EvidenceKind::kNodeCondition) piece.text = "NVSwitchFault: SXid";
  return piece;
}

// A book made from what another one has kept.
CaseBook rebuilt(const CaseBook& book) {
  CaseBook copy;
  for (const std::string& gpu : book.gpus()) copy.add_gpu(book.key(gpu));
  for (const std::string& gpu : book.gpus()) {
    for (const Evidence& piece : book.of_gpu(gpu)) copy.add(book.key(gpu), piece);
  }
  for (const char* node : {"n", "m"}) {
    for (const Evidence& piece : book.of_node(node)) copy.add_to_node(node, piece);
  }
  return copy;
}

TEST_F(Judge, VerdictIsAFunctionOfWhatIsKept) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    base::Prng random(seed);
    CaseBook first;
    for (const char* name : kNames) first.add_gpu(key(name));
    for (int i = 0; i < 120; ++i) {
      const char* const gpu = kNames[random.below(std::size(kNames))];
      Evidence piece = random_piece(random);
      if (random.below(12) == 0) {
        first.add_to_node(std::string_view(gpu).substr(0, 1), piece);
      } else {
        first.add(key(gpu), piece);
      }
    }
    const CaseBook second = rebuilt(first);
    for (const char* gpu : kNames) {
      const base::Instant now = after(base::hours(26));
      EXPECT_EQ(judge_gpu(first, key(gpu), rules, now), judge_gpu(second, key(gpu), rules, now))
          << seed << " " << gpu;
    }
  }
}

TEST_F(Judge, OrderInWhichEvidenceComesLeavesNoTrace) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    base::Prng random(seed);
    std::vector<std::pair<const char*, Evidence>> pieces;
    for (int i = 0; i < 40; ++i) {
      pieces.emplace_back(kNames[random.below(std::size(kNames))], random_piece(random));
      // Equal times would leave the order among themselves open.
      pieces.back().second.at = pieces.back().second.last = after(base::seconds(i * 700));
    }
    CaseBook forward;
    CaseBook backward;
    for (const char* name : kNames) {
      forward.add_gpu(key(name));
      backward.add_gpu(key(name));
    }
    for (const auto& [gpu, piece] : pieces) forward.add(key(gpu), piece);
    std::ranges::reverse(pieces);
    for (const auto& [gpu, piece] : pieces) backward.add(key(gpu), piece);
    for (const char* gpu : kNames) {
      const base::Instant now = after(base::hours(26));
      EXPECT_EQ(judge_gpu(forward, key(gpu), rules, now), judge_gpu(backward, key(gpu), rules, now))
          << seed << " " << gpu;
    }
  }
}

TEST(Keep, JoinsEqualPiecesInAnyOrder) {
  std::vector<Evidence> kept;
  EXPECT_FALSE(keep(kept, xid(31)));
  EXPECT_FALSE(keep(kept, xid(31, after(base::seconds(100)))));
  EXPECT_TRUE(keep(kept, xid(31, after(base::seconds(50)))));
  ASSERT_EQ(kept.size(), 1U) << "the one between joins both";
  EXPECT_EQ(kept.front().count, 3U);
  EXPECT_EQ(kept.front().at, kNoon);
  EXPECT_EQ(kept.front().last, after(base::seconds(100)));
}

TEST(Keep, JoinsNothingOverTheTimeAtWhichAPersonBroughtItOnline) {
  std::vector<Evidence> kept;
  keep(kept, xid(48));
  keep(kept, piece_of(EvidenceKind::kCleared, after(base::seconds(10))));
  EXPECT_FALSE(keep(kept, xid(48, after(base::seconds(20)))));
  EXPECT_TRUE(keep(kept, xid(48, after(base::seconds(30)))));
  EXPECT_TRUE(keep(kept, xid(48, after(base::seconds(5)))));
  EXPECT_FALSE(keep(kept, piece_of(EvidenceKind::kCleared, after(base::seconds(40)))));
  ASSERT_EQ(kept.size(), 4U);
  EXPECT_EQ(kept[0].last, after(base::seconds(5)));
  EXPECT_EQ(kept[2].at, after(base::seconds(20)));
  EXPECT_EQ(kept[2].last, after(base::seconds(30)));
}

TEST(Keep, ForgetsWhatTellsLeast) {
  std::vector<Evidence> kept;
  keep(kept, xid(48));
  keep(kept, piece_of(EvidenceKind::kRemapFailed, kNoon));
  for (int i = 1; i < 500; ++i) keep(kept, xid(45, after(base::minutes(2 * i))));
  EXPECT_EQ(kept.size(), kMaxKept);
  EXPECT_EQ(kept[0].code, 48U);
  EXPECT_EQ(kept[1].kind, EvidenceKind::kRemapFailed);
}

}  // namespace
}  // namespace gpu_platform::health::testing
