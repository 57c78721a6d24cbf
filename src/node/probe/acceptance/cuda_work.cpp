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
// and GPU agree to the bit. PTX, compiled by the driver for the GPU that is there.
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
.visible .entry fault(.param .u64 out)
{
  .reg .b64 %a<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %a1, [out];
  mov.u32 %r1, 1;
  st.global.u32 [%a1], %r1;
  ret;
}
)";
// In the first page, which no program has mapped.
constexpr std::uint64_t kNotMapped = 0x800;

constexpr unsigned kBlocks = 4096;
constexpr unsigned kThreads = 256;
constexpr std::size_t kChecked = 512;  // of each launch

std::uint32_t expected(std::uint32_t value, std::uint32_t rounds) {
  for (std::uint32_t i = 0; i < rounds; ++i) value = value * 1664525u + 1013904223u;
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
  int (*device_count)(int*) = nullptr;
  int (*device_uuid)(unsigned char (*)[16], int) = nullptr;
  int (*error_name)(int, const char**) = nullptr;
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
                        find(library, cuda.copy_back, "cuMemcpyDtoH_v2") &&
                        find(library, cuda.device_count, "cuDeviceGetCount") &&
                        find(library, cuda.device_uuid, "cuDeviceGetUuid") &&
                        find(library, cuda.error_name, "cuGetErrorName");
  if (!is_whole) return fail(ErrorCode::kUnavailable, fmt::format("{} lacks functions", path));
  return cuda;
}

base::Status done(int code, const char* what) {
  if (code == 0) return {};
  return fail(ErrorCode::kUnavailable, fmt::format("{} answers {}", what, code));
}

base::Status launch_and_check(const Cuda& cuda, void* kernel, std::uint64_t memory,
                              std::uint32_t rounds, const std::vector<std::uint32_t>& right,
                              CudaWork& work) {
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

// The first visible GPU with a context of this thread's and the kernels loaded.
struct OpenGpu {
  Cuda cuda;
  std::string device;
  void* module = nullptr;
};

Result<OpenGpu> open_gpu(const std::string& library) {
  OpenGpu gpu;
  TRY_ASSIGN(gpu.cuda, open_cuda(library));
  int device = 0;
  void* context = nullptr;
  char name[128] = {};
  TRY(done(gpu.cuda.init(0), "cuInit"));
  TRY(done(gpu.cuda.device_get(&device, 0), "cuDeviceGet"));
  TRY(done(gpu.cuda.device_name(name, sizeof name - 1, device), "cuDeviceGetName"));
  TRY(done(gpu.cuda.retain(&context, device), "cuDevicePrimaryCtxRetain"));
  TRY(done(gpu.cuda.set_current(context), "cuCtxSetCurrent"));
  TRY(done(gpu.cuda.load(&gpu.module, kProgram), "cuModuleLoadData"));
  gpu.device = name;
  return gpu;
}

Result<void*> find_kernel(const OpenGpu& gpu, const char* name) {
  void* kernel = nullptr;
  TRY(done(gpu.cuda.function(&kernel, gpu.module, name), "cuModuleGetFunction"));
  return kernel;
}

std::string uuid_text(const unsigned char (&bytes)[16]) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < std::size(bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

}  // namespace

Result<CudaWork> do_cuda_work(const CudaWorkOptions& options) {
  TRY_ASSIGN(const OpenGpu gpu, open_gpu(options.library));
  TRY_ASSIGN(void* const kernel, find_kernel(gpu, "work"));
  std::uint64_t held = 0;
  std::uint64_t memory = 0;
  if (options.memory > base::Bytes()) {
    const auto bytes = static_cast<std::size_t>(options.memory.value());
    TRY(done(gpu.cuda.allocate(&held, bytes), "cuMemAlloc"));
  }
  TRY(done(gpu.cuda.allocate(&memory, std::size_t{kBlocks} * kThreads * 4), "cuMemAlloc"));
  std::vector<std::uint32_t> right;
  constexpr std::size_t kStep = std::size_t{kBlocks} * kThreads / kChecked;
  for (std::size_t i = 0; i < kChecked; ++i) {
    right.push_back(expected(static_cast<std::uint32_t>(i * kStep), options.rounds));
  }
  CudaWork work;
  work.device = gpu.device;
  const std::int64_t begin = os::monotonic_ns();
  std::int64_t now = begin;
  do {
    TRY(launch_and_check(gpu.cuda, kernel, memory, options.rounds, right, work));
    now = os::monotonic_ns();
    work.ended_us.push_back(now / 1000);
  } while (now < begin + options.time.value());
  work.launches_per_second =
      static_cast<double>(work.launches) * 1e9 / static_cast<double>(now - begin);
  return work;
}

Result<CudaError> do_cuda_fault(const std::string& library) {
  TRY_ASSIGN(const OpenGpu gpu, open_gpu(library));
  TRY_ASSIGN(void* const kernel, find_kernel(gpu, "fault"));
  std::uint64_t memory = 0;
  std::uint32_t value = 0;
  TRY(done(gpu.cuda.allocate(&memory, sizeof value), "cuMemAlloc"));
  std::uint64_t address = kNotMapped;
  void* arguments[] = {&address};
  TRY(done(gpu.cuda.launch(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr),
           "cuLaunchKernel"));
  CudaError error;
  error.code = gpu.cuda.copy_back(&value, memory, sizeof value);  // waits for the kernel
  if (error.code == 0) {
    return fail(ErrorCode::kFailedPrecondition, "CUDA reports no error of the kernel");
  }
  const char* name = nullptr;
  if (gpu.cuda.error_name(error.code, &name) == 0 && name != nullptr) error.name = name;
  return error;
}

Result<std::vector<std::string>> cuda_gpus(const std::string& library) {
  TRY_ASSIGN(const Cuda cuda, open_cuda(library));
  int count = 0;
  TRY(done(cuda.init(0), "cuInit"));
  TRY(done(cuda.device_count(&count), "cuDeviceGetCount"));
  std::vector<std::string> uuids;
  for (int i = 0; i < count; ++i) {
    int device = 0;
    unsigned char bytes[16] = {};
    TRY(done(cuda.device_get(&device, i), "cuDeviceGet"));
    TRY(done(cuda.device_uuid(&bytes, device), "cuDeviceGetUuid"));
    uuids.push_back(uuid_text(bytes));
  }
  return uuids;
}

}  // namespace gpu_platform::node
