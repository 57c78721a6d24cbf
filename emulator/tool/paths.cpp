#include "tool/paths.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace gpu_emulator {
namespace {

namespace fs = std::filesystem;

fs::path executable_dir() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string default_boards_dir() {
  const fs::path installed = executable_dir() / "../share/gpu-platform/boards";
  std::error_code error;
  if (fs::is_directory(installed, error)) return installed.lexically_normal();
  return GPU_EMULATOR_SOURCE_BOARDS;
}

std::string default_library_dir() {
  const fs::path built = executable_dir() / "emulator";
  std::error_code error;
  if (fs::is_directory(built, error)) return built;
  return (executable_dir() / "../lib/gpu-platform").lexically_normal();
}

std::string default_program_dir() {
  const fs::path built = executable_dir() / "emulator/bin";
  std::error_code error;
  if (fs::is_directory(built, error)) return built;
  return (executable_dir() / "../libexec/gpu-platform/emulated").lexically_normal();
}

std::string default_data_dir() {
  if (::geteuid() == 0) return "/var/lib/gpu-platform";
  std::string state = environment("XDG_STATE_HOME");
  if (state.empty()) state = environment("HOME") + "/.local/state";
  return state + "/gpu-platform";
}

}  // namespace gpu_emulator
