#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

#include "mps/control_daemon.h"
#include "mps/front_end.h"
#include "mps/mps_socket.h"

// nvidia-cuda-mps-control of emulated boards: the control daemon (-d, -f) and its front end, which
// reads commands from standard input.

namespace {

constexpr char kHelp[] =
    "The MPS control daemon of emulated GPUs, and its front end.\n"
    "\n"
    "Usage: nvidia-cuda-mps-control [-d | -f]\n"
    "\n"
    "  -d   start the daemon and return\n"
    "  -f   be the daemon, with its log on standard error\n"
    "\n"
    "Without an option it sends the commands of standard input to the daemon. The folders are "
    "those\n"
    "of CUDA_MPS_PIPE_DIRECTORY and CUDA_MPS_LOG_DIRECTORY.\n";

int run_daemon(bool is_background) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  return gpu_emulator::run_control_daemon(
      {.pipe_folder = fs::absolute(gpu_emulator::mps_pipe_folder(), error).string(),
       .log_folder = fs::absolute(gpu_emulator::mps_log_folder(), error).string(),
       .server_program = (own.parent_path() / "nvidia-cuda-mps-server").string(),
       .is_background = is_background});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view option = argc == 2 ? argv[1] : "";
  if (argc == 1) {
    return gpu_emulator::run_mps_front_end(gpu_emulator::mps_pipe_folder(), std::cin);
  }
  if (option == "-d" || option == "-f") return run_daemon(option == "-d");
  if (option == "-h" || option == "--help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  return 1;
}
