#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "target.h"

// libFuzzer's two doors. With FUZZ_SEEDS=FOLDER the program writes its seeds there and ends.

extern "C" int LLVMFuzzerInitialize(int*, char***) {  // NOLINT(readability-identifier-naming)
  const char* const folder = std::getenv("FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  int number = 0;
  for (const std::string& seed : gpu_platform::fuzz::seeds()) {
    std::ofstream file(std::string(folder) + "/seed-" + std::to_string(number++), std::ios::binary);
    file << seed;
    if (!file.flush()) std::exit(1);
  }
  std::exit(0);
}

// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gpu_platform::fuzz::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
