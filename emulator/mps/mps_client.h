#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "mps/mps_words.h"
#include "os/descriptor.h"

namespace gpu_emulator {

// Returns the limits of CUDA_MPS_ACTIVE_THREAD_PERCENTAGE and CUDA_MPS_PINNED_DEVICE_MEM_LIMIT.
// Wrong values limit nothing.
MpsLimits mps_limits_of_environment();

// The sentence on an error of MPS by CUDA's number (mps_socket.h), which it has in parentheses. The
// code is kUnavailable, and kFailedPrecondition for an illegal address.
gpu_platform::base::Error mps_error(int code);

// A process that is a client of an MPS server, from the connection to its goodbye. One thread.
class MpsClient {
 public:
  // Connects by the control daemon of the folder. `own`: the limits of the client itself. It waits
  // for the server's answer, for ever if the server is wedged.
  static gpu_platform::base::Result<MpsClient> connect(const std::string& pipe_folder,
                                                       const MpsLimits& own);
  MpsClient(MpsClient&&) = default;
  MpsClient& operator=(MpsClient&&) = delete;
  // Says goodbye.
  ~MpsClient();

  // Becomes readable when the client is served no more; error() then says why.
  int descriptor() const { return socket_.get(); }
  gpu_platform::base::Error error();

  // The limits in force: the lower ones of the server's and its own.
  const MpsLimits& limits() const { return limits_; }
  // The lowest memory limit of its first devices, in bytes.
  std::optional<std::uint64_t> max_bytes(std::size_t devices) const;
  // The utilization that it reaches of what it wants.
  std::uint32_t capped(std::uint32_t percent) const;

  // Tells the server its utilization: above 0 it is inside a kernel.
  void state_load(std::uint32_t percent);
  // Its kernel never ends, so that no command of the control daemon terminates it.
  void get_stuck();
  // Uses an illegal address, which error() tells.
  void fault();

 private:
  MpsClient(gpu_platform::os::Descriptor socket, MpsLimits limits)
      : socket_(std::move(socket)), limits_(std::move(limits)) {}

  gpu_platform::os::Descriptor socket_;
  MpsLimits limits_;
};

}  // namespace gpu_emulator
