#include "mps/mps_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "mps/mps_socket.h"
#include "os/packet_socket.h"

namespace gpu_emulator {
namespace {

using gpu_platform::base::Error;
using gpu_platform::base::ErrorCode;
using gpu_platform::os::Packet;
using gpu_platform::os::send_packet;

// The answer of the server, or of the daemon in its place; empty if both are gone. A socket that
// was closed with packets of ours unread tells that first, and only then what it still has for us.
std::vector<std::string> next_answer(int socket) {
  char buffer[kMaxMpsPacket];
  int closings = 0;
  while (closings < 2) {
    const Packet packet = gpu_platform::os::receive_packet(socket, buffer, sizeof buffer);
    const gpu_platform::os::Descriptor unexpected(packet.fd);
    if (packet.kind == Packet::Kind::kMessage) return words_of(packet.bytes);
    if (packet.kind == Packet::Kind::kClosed) ++closings;
  }
  return {};
}

const char* sentence_of(int code) {
  switch (code) {
    case kIllegalAddress:
      return "an illegal memory address was used, by this process or by another client of its MPS "
             "server";
    case kMpsConnectionFailed:
      return "the MPS control daemon has no server for this process";
    case kMpsServerLost:
      return "the MPS server was lost";
    case kMpsNotReady:
      return "the MPS server is not ready: its control daemon is shutting down";
    case kMpsTooManyClients:
      return "the MPS server has its maximum number of clients";
    case kMpsTerminated:
      return "the MPS client was terminated";
    default:
      return "MPS failed";
  }
}

}  // namespace

MpsLimits mps_limits_of_environment() {
  const auto value_of_variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  MpsLimits limits;
  const std::string percentage = value_of_variable("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  limits.percentage = parse_percentage(percentage).value_or(limits.percentage);
  limits.pinned_mib = parse_pinned_limits(value_of_variable("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"));
  return limits;
}

Error mps_error(int code) {
  const bool is_fault = code == kIllegalAddress;
  return {is_fault ? ErrorCode::kFailedPrecondition : ErrorCode::kUnavailable,
          fmt::format("{} ({})", sentence_of(code), code)};
}

gpu_platform::base::Result<MpsClient> MpsClient::connect(const std::string& pipe_folder,
                                                         const MpsLimits& own) {
  auto socket = connect_to_control(pipe_folder, "client");
  if (!socket.is_open()) {
    const std::string why = gpu_platform::base::system_error(pipe_folder, errno).message;
    return gpu_platform::base::fail(ErrorCode::kUnavailable,
                                    fmt::format("cannot connect to the MPS control daemon ({}): {}",
                                                kMpsConnectionFailed, why));
  }
  const std::vector<std::string> answer = next_answer(socket.get());
  if (answer.size() > 1 && answer[0] == "refused") {
    return std::unexpected(mps_error(static_cast<int>(number_at(answer[1]))));
  }
  if (answer.size() < 2 || answer[0] != "welcome") {
    return std::unexpected(mps_error(kMpsServerLost));
  }
  const MpsLimits server{parse_percentage(answer[1]).value_or(100),
                         parse_pinned_limits(answer.size() > 2 ? answer[2] : "")};
  return MpsClient(std::move(socket), narrower(server, own));
}

MpsClient::~MpsClient() {
  if (socket_.is_open()) (void)send_packet(socket_.get(), "bye");
}

Error MpsClient::error() {
  const std::vector<std::string> answer = next_answer(socket_.get());
  if (answer.empty()) return mps_error(kMpsServerLost);
  return mps_error(answer[0] == "fault" ? kIllegalAddress : kMpsTerminated);
}

std::optional<std::uint64_t> MpsClient::max_bytes(std::size_t devices) const {
  std::optional<std::uint64_t> lowest;
  for (const auto& [device, mib] : limits_.pinned_mib) {
    if (device < devices) lowest = std::min(lowest.value_or(mib << 20), mib << 20);
  }
  return lowest;
}

std::uint32_t MpsClient::capped(std::uint32_t percent) const {
  const auto whole = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(limits_.percentage));
  return std::min(percent, whole);
}

void MpsClient::state_load(std::uint32_t percent) {
  (void)send_packet(socket_.get(), fmt::format("load {}", percent));
}

void MpsClient::get_stuck() {
  (void)send_packet(socket_.get(), "stuck");
}

void MpsClient::fault() {
  (void)send_packet(socket_.get(), "fault");
}

}  // namespace gpu_emulator
