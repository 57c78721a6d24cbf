#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/channel.h"
#include "model/terminal_size.h"

// What is said on a WebSocket into a pod: v5.channel.k8s.io for a command and for the container's
// own process, v4.channel.k8s.io for a port. Each message begins with one byte that names its
// stream. Pure.

namespace gpu_platform::kubernetes {

// A command in a container, a connection to a port of a pod, or the container's own process.
struct PodStream {
  std::string namespace_name;
  std::string pod;
  std::string container;                        // not of a port
  std::vector<std::string> command;             // empty: the port, or the container's own process
  std::optional<model::TerminalSize> terminal;  // none: pipes
  std::uint16_t port = 0;
  // The end of the container's own process:
  bool without_output = false;  // only its input is wanted
  bool is_usual_size = false;   // `terminal` is not the client's: a terminal in use keeps its own
  std::string printed = {};     // the latest output from before, which is shown first

  bool is_port() const { return port != 0; }
  bool is_attach() const { return command.empty() && port == 0; }
};

// Returns the path of the request, with its query.
std::string path_of(const PodStream& stream);
// Returns the subprotocol that the request asks for.
std::string protocol_of(const PodStream& stream);

// ---- to the pod

std::string input_message(std::string_view bytes);
std::string resize_message(model::TerminalSize size);
std::string end_of_input_message();  // v5 only
// Returns the byte by which a terminal sends this signal to the processes in its foreground;
// nothing if there is none.
std::optional<char> key_of(int signal);

// ---- from the pod

// How a command or connection ended.
struct StreamEnd {
  model::ChannelEnd end = model::ChannelEnd::kExited;
  std::uint8_t value = 0;  // as in model::EndFrame
  std::string text;

  friend bool operator==(const StreamEnd&, const StreamEnd&) = default;
};
// Reads the Status object with which a command's end is told.
StreamEnd end_of_status(std::string_view json);

struct PodMessage {
  enum class Kind : std::uint8_t { kNothing, kOutput, kErrorOutput, kEnd };
  Kind kind = Kind::kNothing;  // kNothing: there is nothing to pass on
  std::string_view bytes;      // a view into the message
};

// Tells the messages of one stream apart.
class PodMessages {
 public:
  explicit PodMessages(bool is_port) : is_port_(is_port) {}
  PodMessage read(std::string_view message);

 private:
  PodMessage read_of_port(std::uint8_t stream, std::string_view bytes);

  bool is_port_;
  std::size_t port_bytes_[2] = {0, 0};  // of the number that comes first, already seen
};

}  // namespace gpu_platform::kubernetes
