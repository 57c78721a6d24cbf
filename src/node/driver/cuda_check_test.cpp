#include "node/driver/cuda_check.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "node/driver/cuda_kernels.h"

namespace gpu_platform::node {
namespace {

const std::string kFirst = "GPU-00000000-0000-0000-0000-000000000000";
const std::string kSecond = "GPU-00000000-0000-0000-0000-000000000001";
using Failures = std::map<std::string, std::string>;

// On a library whose GPUs are this CPU.
class CudaCheck : public testing::Test {
 protected:
  void TearDown() override { unsetenv("FAKE_CUDA_FAULT"); }

  static CudaOutcome check_with(const char* fault,
                                const std::vector<std::string>& uuids = {kFirst, kSecond}) {
    setenv("FAKE_CUDA_FAULT", fault, 1);
    return check_with_cuda(uuids, {1, 1}, FAKE_CUDA);
  }
};

TEST_F(CudaCheck, PassesSoundGpus) {
  const CudaOutcome outcome = check_with("none");
  EXPECT_TRUE(outcome.has_run);
  EXPECT_EQ(outcome.failures, Failures{});
  EXPECT_TRUE(outcome.detail.ends_with("2 copies between GPUs")) << outcome.detail;
}

TEST_F(CudaCheck, FindsMemoryThatDoesNotKeepAPatternAndBlamesNoPeer) {
  const CudaOutcome outcome = check_with("memory");
  ASSERT_EQ(outcome.failures.size(), 1U);
  EXPECT_TRUE(outcome.failures.contains(kSecond));
}

TEST_F(CudaCheck, FindsWrongResults) {
  EXPECT_EQ(check_with("work").failures,
            (Failures{{kSecond, "1 of its threads computed a wrong result"}}));
}

TEST_F(CudaCheck, FindsCopiesThatArriveWrongOnBothEnds) {
  const CudaOutcome outcome = check_with("link");
  EXPECT_EQ(outcome.failures.size(), 2U);
}

TEST_F(CudaCheck, ACallThatFailsIsAFailureOfItsGpu) {
  EXPECT_EQ(check_with("call").failures,
            (Failures{{kSecond, "cuCtxSynchronize: CUDA_ERROR_FAKE (700)"}}));
  const CudaOutcome other_way = check_with("call", {kSecond, kFirst});
  EXPECT_EQ(other_way.failures.at(kFirst), "it was not checked, because " + kSecond + " failed");
}

TEST_F(CudaCheck, AGpuThatCudaDoesNotListHasFailed) {
  EXPECT_EQ(check_with("none", {"GPU-none"}).failures,
            (Failures{{"GPU-none", "CUDA does not list it"}}));
}

TEST_F(CudaCheck, CudaThatDoesNotStartIsAFailureOfAll) {
  EXPECT_EQ(check_with("init").failures.size(), 2U);
}

TEST_F(CudaCheck, WithoutALibraryOrADriverNothingIsRunAndSaid) {
  const CudaOutcome none = check_with_cuda({kFirst}, {1, 1}, "/none/libcuda.so.1");
  EXPECT_FALSE(none.has_run);
  EXPECT_EQ(none.detail, "readings only: there is no libcuda");
  EXPECT_EQ(none.failures, Failures{});
  EXPECT_FALSE(check_with("stub").has_run);
}

TEST(CudaKernels, ComputeTheSameInEveryRun) {
  EXPECT_EQ(work_result(0, 0), 0U);
  EXPECT_EQ(work_result(5, 100), work_result(5, 100));
  EXPECT_NE(work_result(5, 100), work_result(6, 100));
  EXPECT_NE(pattern_word(1, 0), pattern_word(2, 0));
  EXPECT_EQ(pattern_word(7, 0xffffffff), ~pattern_word(7, 0));
}

}  // namespace
}  // namespace gpu_platform::node
