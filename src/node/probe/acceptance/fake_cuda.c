/* A library with libcuda's names for tests: its "GPU" computes every 2048th number, which are those that are
 * checked. FAKE_CUDA_INIT=N: cuInit answers N. FAKE_CUDA_WRONG: one of the numbers is wrong.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t* memory;

int cuInit(unsigned flags) {
  const char* code = getenv("FAKE_CUDA_INIT");
  (void)flags;
  return code == NULL ? 0 : atoi(code);
}

int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}

int cuDeviceGetName(char* name, int length, int device) {
  (void)device;
  snprintf(name, (size_t)length, "Fake GPU");
  return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  (void)device;
  *context = &memory;
  return 0;
}

int cuCtxSetCurrent(void* context) { return context == &memory ? 0 : 1; }

int cuMemAlloc_v2(uint64_t* out, size_t size) {
  memory = calloc(1, size);
  *out = (uint64_t)(uintptr_t)memory;
  return memory == NULL;
}

int cuModuleLoadData(void** module, const void* program) {
  *module = &memory;
  return program == NULL;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  *function = module;
  return name[0] != 'w';
}

int cuLaunchKernel(void* function, unsigned blocks, unsigned by, unsigned bz, unsigned threads, unsigned ty,
                   unsigned tz, unsigned shared, void* stream, void** arguments, void** extra) {
  uint32_t* out = (uint32_t*)(uintptr_t) * (uint64_t*)arguments[0];
  const uint32_t rounds = *(uint32_t*)arguments[1];
  (void)function, (void)by, (void)bz, (void)ty, (void)tz, (void)shared, (void)stream, (void)extra;
  for (uint32_t i = 0; i < blocks * threads; i += 2048) {
    uint32_t value = i;
    for (uint32_t k = 0; k < rounds; ++k) value = value * 1664525u + 1013904223u;
    out[i] = value;
  }
  if (getenv("FAKE_CUDA_WRONG") != NULL) out[2048] ^= 1;
  return 0;
}

int cuMemcpyDtoH_v2(void* out, uint64_t from, size_t size) {
  for (size_t i = 0; i < size / 4; ++i) ((uint32_t*)out)[i] = ((uint32_t*)(uintptr_t)from)[i];
  return 0;
}
