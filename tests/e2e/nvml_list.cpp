// Prints what NVML knows of: how many GPUs, then index and UUID of each. Runs in containers of the
// tests, with the libnvidia-ml that it finds there.

#include <dlfcn.h>
#include <stdio.h>

namespace {

template <class Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

int main() {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  const auto init = find<int (*)()>(library, "nvmlInit_v2");
  const auto count = find<int (*)(unsigned*)>(library, "nvmlDeviceGetCount_v2");
  const auto at = find<int (*)(unsigned, void**)>(library, "nvmlDeviceGetHandleByIndex_v2");
  const auto uuid = find<int (*)(void*, char*, unsigned)>(library, "nvmlDeviceGetUUID");
  const auto index = find<int (*)(void*, unsigned*)>(library, "nvmlDeviceGetIndex");
  if (const int error = init(); error != 0) {
    fprintf(stderr, "nvmlInit: %d\n", error);
    return 3;
  }
  unsigned gpus = 0;
  if (count(&gpus) != 0) return 4;
  printf("%u GPUs\n", gpus);
  for (unsigned i = 0; i < gpus; ++i) {
    void* device = nullptr;
    char text[96] = "";
    unsigned place = 0;
    if (at(i, &device) != 0 || uuid(device, text, sizeof text) != 0 || index(device, &place) != 0) {
      return 5;
    }
    printf("%u %s\n", place, text);
  }
  return 0;
}
