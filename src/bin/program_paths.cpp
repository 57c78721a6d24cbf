#include "bin/program_paths.h"

#include <filesystem>

namespace gpu_platform::bin {

ProgramPaths find_program_paths() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  const bool is_installed = fs::exists(own / "../libexec/gpu-platform/gpu-platform-node", error);
  const fs::path helpers = is_installed ? own / "../libexec/gpu-platform" : own;
  const fs::path programs = is_installed ? helpers / "emulated" : own / "emulator/bin";
  const fs::path libraries = is_installed ? own / "../lib/gpu-platform" : own / "emulator";
  return {(helpers / "gpu-platform-node").lexically_normal().string(),
          (helpers / "gpu-platform-probe").lexically_normal().string(),
          (helpers / "gpu-platform-listener").lexically_normal().string(),
          (own / "gpu-emulator").string(),
          (own / "gpu-emulator-register").string(),
          (libraries / "libnvidia-ml.so.1").lexically_normal().string(),
          programs.lexically_normal().string()};
}

}  // namespace gpu_platform::bin
