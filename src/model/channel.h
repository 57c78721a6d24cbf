#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/ids.h"
#include "model/terminal_size.h"

// A channel joins a person with something inside a running job: a command beside it, the job's own
// terminal and input, or one connection to a port. It carries frames, each whole in one WebSocket
// message between client and daemon and in one packet between daemon and node; the daemon passes
// them on unread.
//
// Nothing is buffered without bound. Output waits at its source until the client has taken what
// came before. Input is allowed kInputWindow bytes that no TakenFrame has answered yet; more ends
// the channel. So a program that does not read its input holds up neither signals nor the
// terminal's size.

namespace gpu_platform::model {

inline constexpr std::size_t kMaxFrame = 32 * 1024;  // a whole frame
inline constexpr std::size_t kMaxFrameBytes = kMaxFrame - 1;
inline constexpr std::size_t kInputWindow = 128 * 1024;

// The target of a channel: a command beside the job, a port of its node's own address, or the job's
// own terminal and input.
struct ChannelOrder {
  AttemptId attempt;
  std::vector<std::string> command;      // empty: the port, or the job itself
  std::optional<TerminalSize> terminal;  // the command's, or the attaching client's; none: pipes
  std::uint16_t port = 0;                // 0: no port
  bool without_output = false;           // of the job itself only the input is wanted
  std::string by;                        // the user that opens it, for the log
  std::uint32_t by_uid = 0;

  bool is_attach() const { return command.empty() && port == 0; }
  friend bool operator==(const ChannelOrder&, const ChannelOrder&) = default;
};

// ---- client -> job. Texts are views into the frame that was decoded.

struct InputFrame {
  std::string_view bytes;
  friend bool operator==(const InputFrame&, const InputFrame&) = default;
};
struct EndOfInputFrame {
  friend bool operator==(const EndOfInputFrame&, const EndOfInputFrame&) = default;
};
struct ResizeFrame {
  TerminalSize size;
  friend bool operator==(const ResizeFrame&, const ResizeFrame&) = default;
};
// A signal for the command's process group; with a terminal, for the group in its foreground.
struct SignalFrame {
  std::uint8_t signal = 0;  // 1-64
  friend bool operator==(const SignalFrame&, const SignalFrame&) = default;
};

// ---- job -> client

struct OutputFrame {
  std::string_view bytes;
  friend bool operator==(const OutputFrame&, const OutputFrame&) = default;
};
struct ErrorOutputFrame {
  std::string_view bytes;
  friend bool operator==(const ErrorOutputFrame&, const ErrorOutputFrame&) = default;
};
// This number of bytes of input has left the window.
struct TakenFrame {
  std::uint32_t bytes = 0;
  friend bool operator==(const TakenFrame&, const TakenFrame&) = default;
};
// The other side is ready. This frame comes first, unless the channel could not be opened.
struct OpenedFrame {
  std::uint64_t received = 0;  // input that the job itself has got before, from any client
  friend bool operator==(const OpenedFrame&, const OpenedFrame&) = default;
};

enum class ChannelEnd : std::uint8_t {
  kExited,     // value: exit code; 0 for a connection that was closed
  kSignalled,  // value: signal
  kNotOpened,  // text says why; value: 127 or 126 where a command was missing or not executable
  kDetached,   // from a job that goes on; text says why
};
// Always the last frame. A channel that ends without one was cut.
struct EndFrame {
  ChannelEnd end = ChannelEnd::kExited;
  std::uint8_t value = 0;
  std::string_view text;  // for a person; may be empty
  friend bool operator==(const EndFrame&, const EndFrame&) = default;
};

using Frame = std::variant<InputFrame, EndOfInputFrame, ResizeFrame, SignalFrame, OutputFrame,
                           ErrorOutputFrame, TakenFrame, OpenedFrame, EndFrame>;

// The first byte is the frame's place in Frame, counted from 1; numbers are little-endian.
std::string encode_frame(const Frame& frame);
// Returns nothing if the bytes are not exactly one known frame.
std::optional<Frame> decode_frame(std::string_view bytes);

}  // namespace gpu_platform::model
