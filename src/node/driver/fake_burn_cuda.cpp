#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

#include "node/driver/cuda_kernels.h"

// A library with libcuda's names for tests: its GPUs' memory is this process's, and its kernels run
// on this CPU. Two GPUs with the UUIDs GPU-00…0 and GPU-00…1, each with 256 MiB. FAKE_CUDA_FAULT:
// "memory", "work", "link" or "call" fails on GPU 1, "init" and "stub" on all.

namespace {

using gpu_platform::node::kLanes;
using gpu_platform::node::pattern_word;
using gpu_platform::node::work_result;

constexpr int kGpus = 2;
constexpr std::size_t kMemory = std::size_t{256} << 20;

int current = 0;
std::size_t used[kGpus] = {};
std::map<void*, std::size_t> sizes;
int contexts[kGpus] = {};

bool fails(std::string_view what, int gpu = 1) {
  const char* const fault = getenv("FAKE_CUDA_FAULT");
  return fault != nullptr && what == fault && gpu == 1;
}

template <class T>
T argument(void** arguments, int index) {
  T value;
  std::memcpy(&value, arguments[index], sizeof value);
  return value;
}

std::uint32_t* words_at(std::uint64_t address) {
  return reinterpret_cast<std::uint32_t*>(address);
}

void fill(void** arguments) {
  std::uint32_t* const words = words_at(argument<std::uint64_t>(arguments, 0));
  const auto count = argument<std::uint32_t>(arguments, 1);
  const auto seed = argument<std::uint32_t>(arguments, 2);
  for (std::uint32_t i = 0; i < count; ++i) words[i] = pattern_word(i, seed);
  if (fails("memory", current)) words[count / 2] ^= 1;
}

void compare(void** arguments) {
  const std::uint32_t* const words = words_at(argument<std::uint64_t>(arguments, 0));
  const auto count = argument<std::uint32_t>(arguments, 1);
  const auto seed = argument<std::uint32_t>(arguments, 2);
  std::uint32_t& faults = *words_at(argument<std::uint64_t>(arguments, 3));
  for (std::uint32_t i = 0; i < count; ++i) faults += words[i] == pattern_word(i, seed) ? 0 : 1;
}

void work(void** arguments) {
  const std::uint32_t* const expected = words_at(argument<std::uint64_t>(arguments, 0));
  const auto rounds = argument<std::uint32_t>(arguments, 1);
  std::uint32_t& faults = *words_at(argument<std::uint64_t>(arguments, 2));
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    faults += expected[lane] == work_result(lane, rounds) ? 0 : 1;
  }
  if (fails("work", current)) ++faults;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  if (fails("stub")) return 34;
  return fails("init") ? 999 : 0;
}
int cuDeviceGetCount(int* count) {
  *count = kGpus;
  return 0;
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}
int cuDeviceGetUuid(unsigned char* bytes, int device) {
  std::memset(bytes, 0, 16);
  bytes[15] = static_cast<unsigned char>(device);
  return 0;
}
int cuGetErrorName(int, const char** name) {
  *name = "CUDA_ERROR_FAKE";
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &contexts[device];
  return 0;
}
int cuCtxSetCurrent(void* context) {
  current = static_cast<int>(static_cast<int*>(context) - &contexts[0]);
  return 0;
}
int cuCtxSynchronize() {
  return fails("call", current) ? 700 : 0;
}
int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = kMemory - used[current];
  *total = kMemory;
  return 0;
}
int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  if (used[current] + bytes > kMemory) return 2;
  void* const memory = calloc(1, bytes);
  used[current] += bytes;
  sizes[memory] = bytes;
  *address = reinterpret_cast<std::uint64_t>(memory);
  return memory == nullptr ? 2 : 0;
}
int cuMemFree_v2(std::uint64_t address) {
  void* const memory = reinterpret_cast<void*>(address);
  used[current] -= sizes[memory];
  sizes.erase(memory);
  free(memory);
  return 0;
}
int cuMemsetD32_v2(std::uint64_t address, unsigned value, std::size_t count) {
  std::fill_n(words_at(address), count, value);
  return 0;
}
int cuMemcpyHtoD_v2(std::uint64_t to, const void* from, std::size_t bytes) {
  std::memcpy(words_at(to), from, bytes);
  return 0;
}
int cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t bytes) {
  std::memcpy(to, words_at(from), bytes);
  return 0;
}
int cuMemcpyPeer(std::uint64_t to, void*, std::uint64_t from, void*, std::size_t bytes) {
  std::memcpy(words_at(to), words_at(from), bytes);
  if (fails("link")) words_at(to)[7] ^= 4;
  return 0;
}
int cuModuleLoadData(void** module, const void* text) {
  *module = const_cast<void*>(text);
  return 0;
}
int cuModuleGetFunction(void** function, void*, const char* name) {
  const std::string_view wanted = name;
  using Kernel = void (*)(void**);
  const Kernel kernel = wanted == "fill" ? &fill : wanted == "compare" ? &compare : &work;
  *function = reinterpret_cast<void*>(kernel);
  return 0;
}
int cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, void*, void** arguments, void**) {
  reinterpret_cast<void (*)(void**)>(function)(arguments);
  return 0;
}

}  // extern "C"
