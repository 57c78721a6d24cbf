#pragma once

#include <sys/un.h>

#include <optional>
#include <string>

#include "os/descriptor.h"

// The folders and the sockets of MPS. One packet is one message. They are texts:
//
//   first packet of a connection   "ui" (a front end) or "client" (a program that uses CUDA)
//   front end and control daemon   ":LINE", and for each one "=ANSWER"
//   control daemon to server       "limits PERCENTAGE [PINNED]", "client" (with its connection),
//                                  "terminate PID", "shutdown", "force"
//   server to control daemon       "ready DEVICE", "clients [PID...]"
//   to a client                    "welcome PERCENTAGE [PINNED]", "refused CODE" (the number of a
//                                  CUDA error), "fault", "terminated"
//   client to server               "load PERCENT", "fault", "stuck", "bye"

namespace gpu_emulator {

inline constexpr std::size_t kMaxMpsPacket = 4096;

// CUDA's numbers of what goes wrong with MPS.
inline constexpr int kMpsConnectionFailed = 805;
inline constexpr int kMpsServerLost = 806;
inline constexpr int kMpsNotReady = 807;
inline constexpr int kMpsTooManyClients = 808;
inline constexpr int kMpsTerminated = 810;
inline constexpr int kIllegalAddress = 700;

// CUDA_MPS_PIPE_DIRECTORY and CUDA_MPS_LOG_DIRECTORY, or NVIDIA's defaults.
std::string mps_pipe_folder();
std::string mps_log_folder();

// Nothing if the path is too long for a socket.
std::optional<sockaddr_un> socket_address(const std::string& path);

// Connects to the control daemon of the folder and says what is connected. Closed, with errno, if
// there is none.
gpu_platform::os::Descriptor connect_to_control(const std::string& pipe_folder, const char* kind);

}  // namespace gpu_emulator
