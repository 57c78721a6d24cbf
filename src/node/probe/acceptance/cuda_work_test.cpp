#include "node/probe/acceptance/cuda_work.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace gpu_platform::node {
namespace {

TEST(CudaWork, ChecksWhatTheGpuComputed) {
  const auto work = do_cuda_work(FAKE_CUDA, base::Duration());

  ASSERT_TRUE(work) << work.error().message;
  EXPECT_EQ(work->device, "Fake GPU");
  EXPECT_EQ(work->launches, 1u);
  EXPECT_EQ(work->checked, 512u);
}

TEST(CudaWork, FindsAWrongResult) {
  setenv("FAKE_CUDA_WRONG", "1", 1);
  const auto work = do_cuda_work(FAKE_CUDA, base::Duration());
  unsetenv("FAKE_CUDA_WRONG");

  ASSERT_FALSE(work);
  EXPECT_NE(work.error().message.find("thread 2048 computed"), std::string::npos)
      << work.error().message;
}

TEST(CudaWork, SaysWhatTheDriverRefuses) {
  setenv("FAKE_CUDA_INIT", "100", 1);
  const auto work = do_cuda_work(FAKE_CUDA, base::Duration());
  unsetenv("FAKE_CUDA_INIT");

  ASSERT_FALSE(work);
  EXPECT_EQ(work.error().message, "cuInit answers 100");
}

TEST(CudaWork, NeedsALibraryThatIsCudas) {
  EXPECT_FALSE(do_cuda_work("/nonexistent/libcuda.so.1", base::Duration()));
  const auto work = do_cuda_work("libm.so.6", base::Duration());

  ASSERT_FALSE(work);
  EXPECT_EQ(work.error().message, "libm.so.6 lacks functions");
}

}  // namespace
}  // namespace gpu_platform::node
