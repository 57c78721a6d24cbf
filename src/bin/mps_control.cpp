#include "bin/mps_control.h"

#include <unistd.h>

#include <filesystem>

namespace gpu_platform::bin {

namespace {

constexpr std::string_view kProgram = "nvidia-cuda-mps-control";

bool is_program(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::vector<std::string> mps_control_folders(const ProgramPaths& programs, bool has_boards,
                                             std::string_view path) {
  if (has_boards) return {programs.emulated_programs};
  // The packages of distributions, and where container tools put the driver's own files.
  std::vector<std::string> folders = {"/usr/bin", "/usr/local/nvidia/bin"};
  while (!path.empty()) {
    const std::size_t end = path.find(':');
    const std::string_view folder = path.substr(0, end);
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
    if (folder.starts_with('/')) folders.emplace_back(folder);
  }
  return folders;
}

std::string find_mps_control(const config::MpsControl& control,
                             const std::vector<std::string>& folders) {
  if (!control.path.empty()) return is_program(control.path) ? control.path : std::string();
  for (const std::string& folder : folders) {
    std::string path = folder + '/' + std::string(kProgram);
    if (is_program(path)) return path;
  }
  return {};
}

}  // namespace gpu_platform::bin
