#include "kubernetes/pod_messages.h"

#include <algorithm>
#include <charconv>
#include <csignal>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kubernetes/json_values.h"
#include "kubernetes/resource_path.h"
#include "kubernetes/text_file.h"

namespace gpu_platform::kubernetes {
namespace {

constexpr char kInput = 0;
constexpr std::uint8_t kOutput = 1;
constexpr std::uint8_t kErrorOutput = 2;
constexpr std::uint8_t kEnd = 3;
constexpr char kResize = 4;
constexpr char kClose = '\xff';
constexpr std::uint8_t kPortData = 0;
constexpr std::uint8_t kPortError = 1;
constexpr std::size_t kPortNumber = 2;  // bytes, first on each stream of a port

constexpr std::uint8_t kMissing = 127;
constexpr std::uint8_t kNotExecutable = 126;
constexpr std::size_t kMaxText = 1000;

// Returns the text of the cause with that reason; empty if there is none.
std::string_view cause_of(const nlohmann::json& status, std::string_view reason) {
  const nlohmann::json* details = member(status, "details");
  const nlohmann::json* causes = details == nullptr ? nullptr : member(*details, "causes");
  if (causes == nullptr || !causes->is_array()) return {};
  for (const nlohmann::json& cause : *causes) {
    if (text_of(cause, "reason") == reason) return text_of(cause, "message");
  }
  return {};
}

// Container runtimes say in words why a command did not start.
std::uint8_t value_of_refusal(std::string_view words) {
  const auto has = [&](std::string_view piece) { return words.find(piece) != words.npos; };
  if (has("executable file not found") || has("no such file or directory")) return kMissing;
  return has("permission denied") ? kNotExecutable : 0;
}

}  // namespace

std::string path_of(const PodStream& stream) {
  const std::string pod = fmt::format("/api/v1/namespaces/{}/pods/{}",
                                      query_value(stream.namespace_name), query_value(stream.pod));
  if (stream.is_port()) return fmt::format("{}/portforward?ports={}", pod, stream.port);
  // With a terminal there is one output.
  std::string path =
      fmt::format("{}/{}?container={}&stdin=true&stdout=true&stderr={}&tty={}", pod,
                  stream.is_attach() ? "attach" : "exec", query_value(stream.container),
                  !stream.terminal.has_value(), stream.terminal.has_value());
  for (const std::string& word : stream.command) path += "&command=" + query_value(word);
  return path;
}

std::string protocol_of(const PodStream& stream) {
  return stream.is_port() ? "v4.channel.k8s.io" : "v5.channel.k8s.io";
}

std::string input_message(std::string_view bytes) {
  std::string message(1, kInput);
  message += bytes;
  return message;
}

std::string resize_message(model::TerminalSize size) {
  return kResize + fmt::format(R"({{"Width":{},"Height":{}}})", size.columns, size.rows);
}

std::string end_of_input_message() {
  return {kClose, kInput};
}

std::optional<char> key_of(int signal) {
  switch (signal) {
    case SIGINT:
      return '\x03';
    case SIGQUIT:
      return '\x1c';
    case SIGTSTP:
      return '\x1a';
    default:
      return std::nullopt;
  }
}

StreamEnd end_of_status(std::string_view json) {
  using model::ChannelEnd;
  const nlohmann::json status = nlohmann::json::parse(json, nullptr, false);
  if (text_of(status, "status") == "Success") return {};
  const std::string words = printable(text_of(status, "message"), kMaxText);
  if (text_of(status, "reason") == "NonZeroExitCode") {
    const std::string_view cause = cause_of(status, "ExitCode");
    std::uint8_t code = 0;
    const auto read = std::from_chars(cause.data(), cause.data() + cause.size(), code);
    if (read.ec == std::errc() && read.ptr == cause.data() + cause.size() && code != 0) {
      return {ChannelEnd::kExited, code, {}};
    }
  }
  if (words.empty()) {
    return {ChannelEnd::kNotOpened, 0,
            fmt::format("the cluster did not report how the command ended: {}", printable(json))};
  }
  return {ChannelEnd::kNotOpened, value_of_refusal(words), words};
}

PodMessage PodMessages::read(std::string_view message) {
  using Kind = PodMessage::Kind;
  // A server says that it is ready with messages that carry nothing.
  if (message.size() < 2) return {};
  const auto stream = static_cast<std::uint8_t>(message.front());
  const std::string_view bytes = message.substr(1);
  if (is_port_) return read_of_port(stream, bytes);
  if (stream == kOutput) return {Kind::kOutput, bytes};
  if (stream == kErrorOutput) return {Kind::kErrorOutput, bytes};
  if (stream == kEnd) return {Kind::kEnd, bytes};
  return {};
}

PodMessage PodMessages::read_of_port(std::uint8_t stream, std::string_view bytes) {
  using Kind = PodMessage::Kind;
  if (stream != kPortData && stream != kPortError) return {};
  std::size_t& seen = port_bytes_[stream];
  const std::size_t skipped = std::min(kPortNumber - seen, bytes.size());
  seen += skipped;
  bytes.remove_prefix(skipped);
  if (bytes.empty()) return {};
  return {stream == kPortData ? Kind::kOutput : Kind::kEnd, bytes};
}

}  // namespace gpu_platform::kubernetes
