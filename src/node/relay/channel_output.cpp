#include "node/relay/channel_output.h"

#include <errno.h>
#include <unistd.h>

#include <string_view>
#include <utility>

namespace gpu_platform::node {

void ChannelOutput::begin(const OpenedChannel& opened) {
  output_ = {opened.output, false};
  error_ = {opened.error, true};
  is_terminal_ = opened.start.terminal.has_value();
}

std::optional<model::Frame> ChannelOutput::next(std::span<char> buffer) {
  std::swap(output_, error_);
  auto frame = read_one(output_, buffer);
  return frame ? frame : read_one(error_, buffer);
}

std::optional<model::Frame> ChannelOutput::read_one(Source& source, std::span<char> buffer) const {
  if (source.fd < 0) return std::nullopt;
  const ssize_t got = read(source.fd, buffer.data(), model::kMaxFrameBytes);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return std::nullopt;
  if (got <= 0) {
    // This is the end of a pipe or a connection; for a terminal it means that no process holds its
    // other side.
    if (!is_terminal_) close(source.fd);
    source.fd = -1;
    return std::nullopt;
  }
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  if (source.is_error) return model::ErrorOutputFrame{bytes};
  return model::OutputFrame{bytes};
}

}  // namespace gpu_platform::node
