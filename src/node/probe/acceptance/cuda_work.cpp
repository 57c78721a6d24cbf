#include "node/probe/acceptance/cuda_work.h"

#include <dlfcn.h>

#include <vector>

#include <fmt/format.h>

#include "os/clock.h"

namespace gpu_platform::node {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

// Each thread runs a linear congruential generator from its own number on: integers, so that CPU
// and GPU agree to the bit. PTX, compiled by the driver for whatever GPU there is.
constexpr const char* kProgram = R"(.version 6.0
.target sm_70
.address_size 64
.visible .entry work(.param .u64 out, .param .u32 rounds)
{
  .reg .pred %p;
  .reg .b32 %r<7>;
  .reg .b64 %a<5>;
  ld.param.u64 %a1, [out];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mov.u32 %r6, %r5;
again:
  setp.eq.u32 %p, %r1, 0;
  @%p bra done;
  mul.lo.u32 %r6, %r6, 1664525;
  add.u32 %r6, %r6, 1013904223;
  sub.u32 %r1, %r1, 1;
  bra again;
done:
  cvta.to.global.u64 %a2, %a1;
  mul.wide.u32 %a3, %r5, 4;
  add.u64 %a4, %a2, %a3;
  st.global.u32 [%a4], %r6;
  ret;
}
)";

constexpr unsigned kBlocks = 4096;
constexpr unsigned kThreads = 256;
constexpr std::uint32_t kRounds = 20'000;
constexpr std::size_t kChecked = 512;  // of each launch

std::uint32_t expected(std::uint32_t value) {
  for (std::uint32_t i = 0; i < kRounds; ++i) value = value * 1664525u + 1013904223u;
  return value;
}

// The functions of libcuda that are called; CUresult travels as int, CUdeviceptr as a number.
struct Cuda {
  int (*init)(unsigned) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*allocate)(std::uint64_t*, std::size_t) = nullptr;
  int (*load)(void**, const void*) = nullptr;
  int (*function)(void**, void*, const char*) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**) = nullptr;
  int (*copy_back)(void*, std::uint64_t, std::size_t) = nullptr;
};

template <class Function>
bool find(void* library, Function& out, const char* name) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  return out != nullptr;
}

Result<Cuda> open_cuda(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(ErrorCode::kUnavailable, fmt::format("{}", dlerror()));
  Cuda cuda;
  const bool is_whole = find(library, cuda.init, "cuInit") &&
                        find(library, cuda.device_get, "cuDeviceGet") &&
                        find(library, cuda.device_name, "cuDeviceGetName") &&
                        find(library, cuda.retain, "cuDevicePrimaryCtxRetain") &&
                        find(library, cuda.set_current, "cuCtxSetCurrent") &&
                        find(library, cuda.allocate, "cuMemAlloc_v2") &&
                        find(library, cuda.load, "cuModuleLoadData") &&
                        find(library, cuda.function, "cuModuleGetFunction") &&
                        find(library, cuda.launch, "cuLaunchKernel") &&
                        find(library, cuda.copy_back, "cuMemcpyDtoH_v2");
  if (!is_whole) return fail(ErrorCode::kUnavailable, fmt::format("{} lacks functions", path));
  return cuda;
}

base::Status done(int code, const char* what) {
  if (code == 0) return {};
  return fail(ErrorCode::kUnavailable, fmt::format("{} answers {}", what, code));
}

base::Status launch_and_check(const Cuda& cuda, void* kernel, std::uint64_t memory,
                              const std::vector<std::uint32_t>& right, CudaWork& work) {
  std::uint32_t rounds = kRounds;
  void* arguments[] = {&memory, &rounds};
  TRY(done(cuda.launch(kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr),
           "cuLaunchKernel"));
  std::vector<std::uint32_t> results(std::size_t{kBlocks} * kThreads);
  TRY(done(cuda.copy_back(results.data(), memory, results.size() * 4), "cuMemcpyDtoH"));
  ++work.launches;
  const std::size_t step = results.size() / kChecked;
  for (std::size_t i = 0; i < kChecked; ++i) {
    if (results[i * step] != right[i]) {
      return fail(ErrorCode::kDataLoss, fmt::format("thread {} computed {}, not {}", i * step,
                                                    results[i * step], right[i]));
    }
    ++work.checked;
  }
  return {};
}

}  // namespace

Result<CudaWork> do_cuda_work(const std::string& library, base::Duration time) {
  TRY_ASSIGN(const Cuda cuda, open_cuda(library));
  int device = 0;
  void* context = nullptr;
  void* module = nullptr;
  void* kernel = nullptr;
  std::uint64_t memory = 0;
  char name[128] = {};
  TRY(done(cuda.init(0), "cuInit"));
  TRY(done(cuda.device_get(&device, 0), "cuDeviceGet"));
  TRY(done(cuda.device_name(name, sizeof name - 1, device), "cuDeviceGetName"));
  TRY(done(cuda.retain(&context, device), "cuDevicePrimaryCtxRetain"));
  TRY(done(cuda.set_current(context), "cuCtxSetCurrent"));
  TRY(done(cuda.load(&module, kProgram), "cuModuleLoadData"));
  TRY(done(cuda.function(&kernel, module, "work"), "cuModuleGetFunction"));
  TRY(done(cuda.allocate(&memory, std::size_t{kBlocks} * kThreads * 4), "cuMemAlloc"));
  std::vector<std::uint32_t> right;
  constexpr std::size_t kStep = std::size_t{kBlocks} * kThreads / kChecked;
  for (std::size_t i = 0; i < kChecked; ++i) {
    right.push_back(expected(static_cast<std::uint32_t>(i * kStep)));
  }
  CudaWork work;
  work.device = name;
  const std::int64_t until = os::monotonic_ns() + time.value();
  do {
    TRY(launch_and_check(cuda, kernel, memory, right, work));
  } while (os::monotonic_ns() < until);
  return work;
}

}  // namespace gpu_platform::node
