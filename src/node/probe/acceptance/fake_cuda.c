/* A library with libcuda's names for tests: its "GPU" computes every 2048th number, which are those that are
 * checked. FAKE_CUDA_INIT=N: cuInit answers N. FAKE_CUDA_WRONG: one of the numbers is wrong. FAKE_CUDA_NO_FAULT:
 * writes anywhere succeed. FAKE_CUDA_TELL=PROGRAM: the program is started as "PROGRAM memory|fault PID BYTES" when
 * memory is allocated and when a kernel writes where nothing is mapped, to tell an emulated board of it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint32_t* memory;
static size_t allocated;
static int fault_kernel;
static int pending;

static void tell(const char* what) {
  const char* program = getenv("FAKE_CUDA_TELL");
  char command[512];
  if (program == NULL) return;
  snprintf(command, sizeof command, "%s %s %d %zu", program, what, (int)getpid(), allocated);
  if (system(command) != 0) fprintf(stderr, "%s: failed\n", command);
}

int cuInit(unsigned flags) {
  const char* code = getenv("FAKE_CUDA_INIT");
  (void)flags;
  return code == NULL ? 0 : atoi(code);
}

int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}

int cuDeviceGetUuid(unsigned char* bytes, int device) {
  const char* text = getenv("CUDA_VISIBLE_DEVICES");
  int n = 0;
  if (text != NULL && text[0] == 'G') text += 4;
  for (; text != NULL && *text != 0 && n < 32; ++text) {
    unsigned digit = 0;
    if (*text == '-' || sscanf((const char[]){*text, 0}, "%x", &digit) != 1) continue;
    bytes[n / 2] = (unsigned char)(n % 2 == 0 ? digit << 4 : bytes[n / 2] | digit);
    ++n;
  }
  return device;
}

int cuGetErrorName(int code, const char** name) {
  *name = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_UNKNOWN";
  return 0;
}

int cuDeviceGetName(char* name, int length, int device) {
  (void)device;
  snprintf(name, (size_t)length, "Fake GPU");
  return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  (void)device;
  pending = 0;
  allocated = 0;
  *context = &memory;
  return 0;
}

int cuCtxSetCurrent(void* context) { return context == &memory ? 0 : 1; }

int cuMemAlloc_v2(uint64_t* out, size_t size) {
  memory = calloc(1, size);
  *out = (uint64_t)(uintptr_t)memory;
  allocated += size;
  tell("memory");
  return memory == NULL;
}

int cuModuleLoadData(void** module, const void* program) {
  *module = &memory;
  return program == NULL;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  *function = name[0] == 'f' ? (void*)&fault_kernel : module;
  return name[0] != 'w' && name[0] != 'f';
}

int cuLaunchKernel(void* function, unsigned blocks, unsigned by, unsigned bz, unsigned threads, unsigned ty,
                   unsigned tz, unsigned shared, void* stream, void** arguments, void** extra) {
  uint32_t* out = (uint32_t*)(uintptr_t) * (uint64_t*)arguments[0];
  if (function == &fault_kernel) {
    if (getenv("FAKE_CUDA_NO_FAULT") == NULL) pending = 700;
    if (pending != 0) tell("fault");
    return 0;
  }
  const uint32_t rounds = *(uint32_t*)arguments[1];
  (void)by, (void)bz, (void)ty, (void)tz, (void)shared, (void)stream, (void)extra;
  for (uint32_t i = 0; i < blocks * threads; i += 2048) {
    uint32_t value = i;
    for (uint32_t k = 0; k < rounds; ++k) value = value * 1664525u + 1013904223u;
    out[i] = value;
  }
  if (getenv("FAKE_CUDA_WRONG") != NULL) out[2048] ^= 1;
  return 0;
}

int cuMemcpyDtoH_v2(void* out, uint64_t from, size_t size) {
  if (pending != 0) return pending;
  for (size_t i = 0; i < size / 4; ++i) ((uint32_t*)out)[i] = ((uint32_t*)(uintptr_t)from)[i];
  return 0;
}
