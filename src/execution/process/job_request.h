#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "execution/cuda_devices.h"
#include "execution/engine.h"

// Makes the request to the node part from a StartOrder. Pure: the environment and the user's data
// are arguments.

namespace gpu_platform::execution {

// The environment that a login would have. The launcher itself looks up the user of the job.
struct UserIdentity {
  std::string name;
  std::string home;
  std::string shell;
  std::uint32_t uid = 0;
};

// The places where jobs on emulated nodes find their board, as programs on real nodes find the
// driver.
struct BoardPlaces {
  std::string boards;   // the folder of the boards' folders, which are called as their nodes
  std::string library;  // the folder of the emulator's libnvidia-ml.so.1
  // The folder of an nvidia-smi for emulated boards. It has no other program, and no job on a real
  // board gets it: NVIDIA's own is the one there.
  std::string programs;
};

// How CUDA_VISIBLE_DEVICES names the GPUs of jobs.
struct CudaOptions {
  CudaNames names = CudaNames::kAuto;
  bool hides_others = false;  // the kernel lets a job on real GPUs open its own alone
};

// What a job needs to be a client of its user's MPS server on its GPU, and the limits of each of
// its processes.
struct MpsClient {
  std::string gpu;      // UUID
  std::string program;  // nvidia-cuda-mps-control, which speaks to the server's daemon
  std::string folder;   // of the daemon
  std::uint32_t percent = 100;
  std::uint32_t memory_mib = 0;

  friend bool operator==(const MpsClient&, const MpsClient&) = default;
};

struct RequestOptions {
  std::uint64_t output_file_bytes = 0;
  std::uint32_t output_files = 1;
  std::uint64_t max_processes = 0;
  bool private_folders = false;
  bool hide_processes = false;
  std::uint64_t start_timeout_ms = 30'000;
  std::uint64_t output_limit_bytes = 0;
  std::string node_program;  // starts the processes of jobs that have several
  BoardPlaces board_places;
  CudaOptions cuda;
  std::optional<MpsClient> mps;  // of a job that is a client of an MPS server
};

// The job's environment, NAME=VALUE each: the submitted one, what a login would set where that has
// nothing, and ours, which always wins. No SLURM_ variables: programs would take the job for
// Slurm's. On an emulated node the board and the emulator's library come first, and, without an
// image, its nvidia-smi. A client of an MPS server finds it, and has its limits; what a job that is
// one submits has none of that job's.
std::vector<std::string> job_environment(const StartOrder& order, std::string_view submitted,
                                         const UserIdentity& user, const BoardPlaces& places = {},
                                         const CudaOptions& cuda = {},
                                         const std::optional<MpsClient>& mps = {});

// Returns the encoded node::LaunchRequest, or an error if the node part could not accept it.
base::Result<std::string> launch_request(const StartOrder& order, std::string_view submitted,
                                         const UserIdentity& user, const RequestOptions& options);

}  // namespace gpu_platform::execution
