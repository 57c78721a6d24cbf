#include "node/probe/acceptance/cuda_work.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "os/clock.h"

namespace gpu_platform::node {
namespace {

TEST(CudaWork, ChecksWhatTheGpuComputed) {
  const auto work = do_cuda_work({.library = FAKE_CUDA});

  ASSERT_TRUE(work) << work.error().message;
  EXPECT_EQ(work->device, "Fake GPU");
  EXPECT_EQ(work->launches, 1u);
  EXPECT_EQ(work->checked, 512u);
  EXPECT_GT(work->launches_per_second, 0);
  ASSERT_EQ(work->ended_us.size(), 1u);
  EXPECT_LE(work->ended_us.front(), os::monotonic_ns() / 1000);
}

TEST(CudaWork, HoldsMemoryBesideItsOwn) {
  setenv("FAKE_CUDA_TELL", "echo", 1);
  testing::internal::CaptureStdout();
  const auto work = do_cuda_work({.library = FAKE_CUDA, .memory = base::kMiB * 64});
  unsetenv("FAKE_CUDA_TELL");
  const std::string told = testing::internal::GetCapturedStdout();

  ASSERT_TRUE(work) << work.error().message;
  EXPECT_NE(told.find(" 67108864\n"), std::string::npos) << told;
  EXPECT_NE(told.find(" 71303168\n"), std::string::npos) << told;  // with the 4 MiB of its results
}

TEST(CudaFault, ReturnsTheErrorThatCudaReports) {
  const auto error = do_cuda_fault(FAKE_CUDA);

  ASSERT_TRUE(error) << error.error().message;
  EXPECT_EQ(error->code, 700);
  EXPECT_EQ(error->name, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST(CudaFault, SaysIfCudaReportsNone) {
  setenv("FAKE_CUDA_NO_FAULT", "1", 1);
  const auto error = do_cuda_fault(FAKE_CUDA);
  unsetenv("FAKE_CUDA_NO_FAULT");

  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().code, base::ErrorCode::kFailedPrecondition);
}

TEST(CudaGpus, AreNamedAsNvidiaSmiNamesThem) {
  const char* uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef";
  setenv("CUDA_VISIBLE_DEVICES", uuid, 1);
  const auto gpus = cuda_gpus(FAKE_CUDA);
  unsetenv("CUDA_VISIBLE_DEVICES");

  ASSERT_TRUE(gpus) << gpus.error().message;
  EXPECT_EQ(*gpus, std::vector<std::string>{uuid});
}

TEST(CudaWork, FindsAWrongResult) {
  setenv("FAKE_CUDA_WRONG", "1", 1);
  const auto work = do_cuda_work({.library = FAKE_CUDA});
  unsetenv("FAKE_CUDA_WRONG");

  ASSERT_FALSE(work);
  EXPECT_NE(work.error().message.find("thread 2048 computed"), std::string::npos)
      << work.error().message;
}

TEST(CudaWork, SaysWhatTheDriverRefuses) {
  setenv("FAKE_CUDA_INIT", "100", 1);
  const auto work = do_cuda_work({.library = FAKE_CUDA});
  unsetenv("FAKE_CUDA_INIT");

  ASSERT_FALSE(work);
  EXPECT_EQ(work.error().message, "cuInit answers 100");
}

TEST(CudaWork, NeedsALibraryThatIsCudas) {
  EXPECT_FALSE(do_cuda_work({.library = "/nonexistent/libcuda.so.1"}));
  const auto work = do_cuda_work({.library = "libm.so.6"});

  ASSERT_FALSE(work);
  EXPECT_EQ(work.error().message, "libm.so.6 lacks functions");
}

}  // namespace
}  // namespace gpu_platform::node
