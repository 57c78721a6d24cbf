#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "health/judge_fixture.h"

namespace gpu_platform::health::testing {
namespace {

TEST_F(Judge, TwoDifferentJobsWithinAnHourDegradeTheGpu) {
  for (const std::uint32_t code : {13, 31, 43, 68, 69, 137}) {
    CaseBook one;
    for (const char* name : kNames) one.add_gpu(key(name));
    one.add(key("n:0"), of_job(xid(code), 1, "ann", "train"));
    one.add(key("n:0"), of_job(xid(code, after(base::minutes(50))), 2, "bob", "infer"));
    const GpuVerdict verdict = judge_gpu(one, key("n:0"), rules, after(base::minutes(51)));
    EXPECT_EQ(verdict.action, Action::kDegrade) << code;
    EXPECT_EQ(verdict.fault, FaultClass::kHardware);
    EXPECT_TRUE(verdict.again_at.is_set()) << "suspicion passes";
  }
}

TEST_F(Judge, TheSameJobOnDifferentGpusIsTheJobsFault) {
  for (const char* gpu : {"n:0", "n:1", "m:0"}) {
    see(of_job(xid(31, after(base::minutes(1))), 1, "ann", "train"), gpu);
  }
  see(of_job(xid(31, after(base::minutes(30))), 2, "ann", "train"));
  for (const char* gpu : {"n:0", "n:1", "m:0"}) {
    EXPECT_EQ(action(after(base::hours(1)), gpu), Action::kCount) << gpu;
  }
}

TEST_F(Judge, AProgramThatDidWellElsewhereConvictsTheGpu) {
  run(1, "ann", "train", {"m:0"}, kNoon);
  end(1, 0, after(base::minutes(10)));
  see(of_job(xid(31, after(base::hours(1))), 2, "ann", "train"));
  EXPECT_EQ(action(after(base::hours(2))), Action::kCount);
  see(of_job(xid(31, after(base::hours(3))), 3, "ann", "train"));
  EXPECT_EQ(action(after(base::hours(4))), Action::kDegrade);
}

TEST_F(Judge, PageFaultsOfUnknownJobsTwiceADayOnOneGpuOfTheNode) {
  see(xid(31));
  see(xid(31, after(base::minutes(2))));
  EXPECT_EQ(action(after(base::minutes(5))), Action::kCount) << "one burst";
  see(xid(31, after(base::hours(5))));
  EXPECT_EQ(action(after(base::hours(6))), Action::kDegrade);
  see(xid(31, after(base::hours(5))), "n:1");
  EXPECT_EQ(action(after(base::hours(6))), Action::kCount) << "on different GPUs";
}

TEST_F(Judge, OnePersonsProgramsProveNothing) {
  for (std::uint64_t i = 0; i < 6; ++i) {
    see(of_job(xid(13, after(base::minutes(static_cast<std::int64_t>(10 * i)))), i + 1, "ann",
               "try-" + std::to_string(i)));
  }
  EXPECT_EQ(action(after(base::hours(2))), Action::kCount);
}

TEST_F(Judge, ErrorsOnMostGpusOfANodeAreTheProgramsFault) {
  for (const char* gpu : {"n:0", "n:1", "n:2"}) {
    for (std::uint64_t i = 0; i < 3; ++i) {
      see(of_job(xid(31, after(base::hours(static_cast<std::int64_t>(2 * i)))), i + 1,
                 "user" + std::to_string(i), std::string("homework") + gpu),
          gpu);
    }
  }
  for (const char* gpu : {"n:0", "n:1", "n:2"}) {
    EXPECT_EQ(action(after(base::hours(12)), gpu), Action::kCount) << gpu;
  }
}

TEST_F(Judge, ExceptionsInTheSameUnitTwice) {
  const std::string unit = "Graphics SM Warp Exception on (GPC 3, TPC 1, SM 0): Illegal Address";
  see(saying(xid(13), unit));
  see(saying(xid(13, after(base::hours(1))), unit), "n:0");
  see(xid(13, after(base::hours(1))), "n:1");  // so that "no other GPU" does not speak
  EXPECT_EQ(action(after(base::hours(2))), Action::kDegrade);
  see(saying(xid(13, after(base::hours(1))),
             "Graphics SM Warp Exception on (GPC 0, TPC 4, SM 1): Illegal Address"));
  EXPECT_EQ(action(after(base::hours(2))), Action::kCount) << "different units";
}

TEST_F(Judge, OneComplaintIsShownAndTwoPeopleCount) {
  const auto complain = [&](base::Instant at, const char* user) {
    Evidence piece = saying(piece_of(EvidenceKind::kComplaint, at), "it is bad");
    piece.user = user;
    book.add_to_node("n", piece);
  };
  complain(kNoon, "ann");
  EXPECT_EQ(action(), Action::kCount);
  complain(after(base::hours(24 * 60)), "bob");
  EXPECT_EQ(judged(after(base::hours(24 * 61))).rule, "complaints");
  EXPECT_EQ(action(after(base::hours(24 * 61))), Action::kDegrade);
}

TEST_F(Judge, DifferentJobsThatCannotStart) {
  see(of_job(piece_of(EvidenceKind::kStartFailed, kNoon), 1, "ann", "train"));
  EXPECT_EQ(action(), Action::kCount);
  see(of_job(piece_of(EvidenceKind::kStartFailed, after(base::minutes(1))), 2, "bob", "infer"));
  EXPECT_EQ(judged(after(base::minutes(3))).rule, "failed-starts");
  run(3, "eve", "eval", {"n:0"}, after(base::minutes(4)));
  end(3, 0, after(base::minutes(5)));
  EXPECT_EQ(action(after(base::minutes(6))), Action::kNone) << "one did well";
}

TEST_F(Judge, JobIsInnocentOfAFaultUnderIt) {
  run(1, "ann", "train", {"n:0", "n:1", "m:0"}, kNoon);
  end(1, 1, after(base::hours(1)));
  EXPECT_EQ(fault_of(1, "ann", "train", kNoon, after(base::hours(1))), FaultClass::kApplication);
  see(xid(79, after(base::minutes(59))), "m:0");
  EXPECT_EQ(fault_of(1, "ann", "train", kNoon, after(base::hours(1))), FaultClass::kHardware);
}

TEST_F(Judge, ContainedErrorKillsOneProgramAndNoOther) {
  run(1, "ann", "train", {"n:0"}, kNoon);
  run(2, "bob", "infer", {"n:0"}, kNoon);
  see(of_job(xid(94, after(base::minutes(9))), 1, "ann", "train"));
  end(1, 1, after(base::minutes(9)));
  EXPECT_EQ(fault_of(1, "ann", "train", kNoon, after(base::minutes(9))), FaultClass::kHardware);
  see(piece_of(EvidenceKind::kReset, after(base::hours(1))));
  see(piece_of(EvidenceKind::kCheck, after(base::hours(2))));
  end(2, 1, after(base::hours(5)));
  EXPECT_EQ(fault_of(2, "bob", "infer", kNoon, after(base::hours(5))), FaultClass::kApplication);
}

TEST_F(Judge, JobThatFailsEverywhereIsCharged) {
  run(1, "ann", "train", {"n:0"}, kNoon);
  end(1, 1, after(base::minutes(10)));
  run(2, "ann", "train", {"m:0"}, after(base::minutes(20)));
  end(2, 1, after(base::minutes(30)));
  EXPECT_EQ(fault_of(2, "ann", "train", after(base::minutes(20)), after(base::minutes(30))),
            FaultClass::kApplication);
}

TEST_F(Judge, OthersThatFailInTheSameMomentClearAJobIfTheyAreOnDifferentGpus) {
  const base::Instant ended = after(base::hours(1));
  run(1, "ann", "train", {"n:0"}, kNoon);
  run(2, "bob", "infer", {"n:1"}, kNoon);
  run(3, "eve", "eval", {"n:1"}, kNoon);
  end(2, 1, ended);
  end(3, 1, ended + base::seconds(5));
  end(1, 1, ended + base::seconds(10));
  EXPECT_EQ(fault_of(1, "ann", "train", kNoon, ended + base::seconds(10)), FaultClass::kApplication)
      << "both have a part of one GPU";
  run(4, "dan", "render", {"n:2"}, kNoon);
  end(4, 1, ended + base::seconds(20));
  EXPECT_EQ(fault_of(1, "ann", "train", kNoon, ended + base::seconds(10)), FaultClass::kHardware);
}

TEST_F(Judge, AnotherProgramOnTwoGpusIsOneOther) {
  const base::Instant ended = after(base::hours(1));
  run(1, "ann", "train", {"n:0"}, kNoon);
  run(2, "bob", "infer", {"n:1", "n:2"}, kNoon);
  end(2, 1, ended);
  end(1, 1, ended);
  EXPECT_EQ(fault_of(1, "ann", "train", kNoon, ended), FaultClass::kApplication);
}

TEST_F(Judge, WordsOfAMistakeChargeTheJob) {
  run(1, "ann", "train", {"n:0"}, kNoon);
  end(1, 1, after(base::minutes(10)), "torch.OutOfMemoryError: CUDA out of memory");
  EXPECT_EQ(fault_of(1, "ann", "train", kNoon, after(base::minutes(10))), FaultClass::kApplication);
  run(2, "ann", "train", {"n:1"}, kNoon);
  end(2, 1, after(base::minutes(10)), "CUDA error: uncorrectable ECC error encountered");
  EXPECT_EQ(fault_of(2, "ann", "train", kNoon, after(base::minutes(10))), FaultClass::kHardware);
}

}  // namespace
}  // namespace gpu_platform::health::testing
