#include "monitoring/evidence_storm.h"

#include <gtest/gtest.h>

namespace gpu_platform::monitoring {
namespace {

using model::Evidence;
using model::EvidenceKind;

constexpr std::int64_t kWindowNs = EvidenceStorm::kWindow.value();

EvidenceStorm::Piece xid(std::uint32_t code, std::int64_t at_ns, std::uint64_t job = 1) {
  Evidence evidence;
  evidence.code = code;
  evidence.at = evidence.last = base::Instant(at_ns);
  evidence.job = model::JobId(job);
  return {"n1", "a", evidence};
}

TEST(EvidenceStorm, TenThousandPiecesASecondAreAHandful) {
  EvidenceStorm storm;
  std::uint64_t told = 0;
  std::uint64_t counted = 0;
  constexpr std::int64_t kStep = 100'000;  // ten thousand in each second
  constexpr std::int64_t kPieces = 300'000;
  for (std::int64_t i = 1; i <= kPieces; ++i) {
    if (const auto piece = storm.take(xid(45, i * kStep), i * kStep)) {
      ++told;
      counted += piece->evidence.count;
    }
    for (const auto& piece : storm.take_due(i * kStep)) {
      ++told;
      counted += piece.evidence.count;
    }
  }
  for (const auto& piece : storm.take_due(kPieces * kStep + kWindowNs)) {
    ++told;
    counted += piece.evidence.count;
  }
  EXPECT_LE(told, 5U);
  EXPECT_EQ(counted, static_cast<std::uint64_t>(kPieces)) << "none is lost";
}

TEST(EvidenceStorm, TheJoinedPieceSaysWhenItBeganAndEnded) {
  EvidenceStorm storm;
  EXPECT_TRUE(storm.take(xid(45, 100), 100));
  EXPECT_FALSE(storm.take(xid(45, 200), 200));
  EXPECT_FALSE(storm.take(xid(45, 300), 300));
  EXPECT_TRUE(storm.take_due(300).empty());

  const auto due = storm.take_due(100 + kWindowNs);

  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].evidence.count, 2U);
  EXPECT_EQ(due[0].evidence.at, base::Instant(200));
  EXPECT_EQ(due[0].evidence.last, base::Instant(300));
  EXPECT_TRUE(storm.take_due(100 + 3 * kWindowNs).empty());
}

TEST(EvidenceStorm, ADifferentPieceIsToldAtOnce) {
  EvidenceStorm storm;
  EXPECT_TRUE(storm.take(xid(45, 1), 1));
  EXPECT_TRUE(storm.take(xid(48, 1), 1)) << "another code";
  EXPECT_TRUE(storm.take(xid(45, 1, 2), 1)) << "another job";
  auto other = xid(45, 1);
  other.gpu_uuid = "b";
  EXPECT_TRUE(storm.take(other, 1)) << "another GPU";
  EXPECT_FALSE(storm.take(xid(45, 1), 1));
}

TEST(EvidenceStorm, AfterAQuietWindowTheFirstIsToldAtOnceAgain) {
  EvidenceStorm storm;
  EXPECT_TRUE(storm.take(xid(45, 1), 1));
  EXPECT_TRUE(storm.take_due(1 + kWindowNs).empty());
  EXPECT_TRUE(storm.take(xid(45, 2), 2 + kWindowNs));
}

TEST(EvidenceStorm, AForgottenGpuTellsItsNextPieceAtOnce) {
  EvidenceStorm storm;
  auto other = xid(48, 1);
  other.gpu_uuid = "b";
  for (const auto& piece : {xid(48, 1), xid(45, 1), other}) EXPECT_TRUE(storm.take(piece, 1));
  EXPECT_FALSE(storm.take(xid(48, 2), 2));
  EXPECT_FALSE(storm.take(xid(48, 3), 3));

  const auto joined = storm.forget("n1", "a");

  ASSERT_EQ(joined.size(), 1U);
  EXPECT_EQ(joined[0].evidence.count, 2U);
  EXPECT_TRUE(storm.take(xid(48, 4), 4));
  EXPECT_TRUE(storm.take(xid(45, 4), 4));
  EXPECT_FALSE(storm.take(other, 4)) << "another GPU";
  EXPECT_EQ(storm.take_due(3 + kWindowNs).size(), 1U) << "that other GPU's";
}

TEST(EvidenceStorm, WhatCountersAddedAddsUp) {
  EvidenceStorm storm;
  auto piece = xid(0, 1);
  piece.evidence.kind = EvidenceKind::kEccCorrected;
  piece.evidence.value = 3;
  EXPECT_TRUE(storm.take(piece, 1));
  EXPECT_FALSE(storm.take(piece, 2));
  EXPECT_FALSE(storm.take(piece, 3));
  const auto due = storm.take_due(1 + kWindowNs);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].evidence.value, 6);
}

TEST(EvidenceStorm, KeepsABoundedNumberOpen) {
  EvidenceStorm storm;
  for (std::uint32_t code = 0; code < EvidenceStorm::kMaxOpen + 10; ++code) {
    EXPECT_TRUE(storm.take(xid(code, 1), 1));
  }
  EXPECT_TRUE(storm.take(xid(EvidenceStorm::kMaxOpen + 5, 1), 1)) << "told as it comes";
}

}  // namespace
}  // namespace gpu_platform::monitoring
