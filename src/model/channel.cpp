#include "model/channel.h"

namespace gpu_platform::model {

namespace {

constexpr std::uint8_t kMaxSignal = 64;

template <class Number>
void put(std::string& out, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    out.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
}

template <class Number>
Number get(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return static_cast<Number>(value);
}

void put_payload(std::string& out, const InputFrame& f) {
  out += f.bytes;
}
void put_payload(std::string&, const EndOfInputFrame&) {}
void put_payload(std::string& out, const ResizeFrame& f) {
  put(out, f.size.columns);
  put(out, f.size.rows);
}
void put_payload(std::string& out, const SignalFrame& f) {
  put(out, f.signal);
}
void put_payload(std::string& out, const OutputFrame& f) {
  out += f.bytes;
}
void put_payload(std::string& out, const ErrorOutputFrame& f) {
  out += f.bytes;
}
void put_payload(std::string& out, const TakenFrame& f) {
  put(out, f.bytes);
}
void put_payload(std::string& out, const OpenedFrame& f) {
  put(out, f.received);
}
void put_payload(std::string& out, const EndFrame& f) {
  put(out, static_cast<std::uint8_t>(f.end));
  put(out, f.value);
  out += f.text.substr(0, kMaxFrame - 3);
}

std::optional<Frame> resize(std::string_view payload) {
  if (payload.size() != 4) return std::nullopt;
  const TerminalSize size{get<std::uint16_t>(payload, 0), get<std::uint16_t>(payload, 2)};
  if (size.columns == 0 || size.rows == 0) return std::nullopt;
  return ResizeFrame{size};
}

std::optional<Frame> signal(std::string_view payload) {
  if (payload.size() != 1) return std::nullopt;
  const auto number = get<std::uint8_t>(payload, 0);
  if (number == 0 || number > kMaxSignal) return std::nullopt;
  return SignalFrame{number};
}

std::optional<Frame> end(std::string_view payload) {
  if (payload.size() < 2) return std::nullopt;
  const auto kind = get<std::uint8_t>(payload, 0);
  if (kind > static_cast<std::uint8_t>(ChannelEnd::kDetached)) return std::nullopt;
  return EndFrame{static_cast<ChannelEnd>(kind), get<std::uint8_t>(payload, 1), payload.substr(2)};
}

// A frame that carries bytes carries at least one.
template <class BytesFrame>
std::optional<Frame> bytes_frame(std::string_view payload) {
  if (payload.empty()) return std::nullopt;
  return BytesFrame{payload};
}

template <class EmptyFrame>
std::optional<Frame> empty_frame(std::string_view payload) {
  if (!payload.empty()) return std::nullopt;
  return EmptyFrame{};
}

}  // namespace

std::string encode_frame(const Frame& frame) {
  std::string bytes(1, static_cast<char>(frame.index() + 1));
  std::visit([&](const auto& f) { put_payload(bytes, f); }, frame);
  return bytes;
}

std::optional<Frame> decode_frame(std::string_view bytes) {
  if (bytes.empty() || bytes.size() > kMaxFrame) return std::nullopt;
  const std::string_view payload = bytes.substr(1);
  switch (bytes.front()) {
    case 1:
      return bytes_frame<InputFrame>(payload);
    case 2:
      return empty_frame<EndOfInputFrame>(payload);
    case 3:
      return resize(payload);
    case 4:
      return signal(payload);
    case 5:
      return bytes_frame<OutputFrame>(payload);
    case 6:
      return bytes_frame<ErrorOutputFrame>(payload);
    case 7:
      if (payload.size() != sizeof(std::uint32_t)) return std::nullopt;
      return TakenFrame{get<std::uint32_t>(payload, 0)};
    case 8:
      if (payload.size() != sizeof(std::uint64_t)) return std::nullopt;
      return OpenedFrame{get<std::uint64_t>(payload, 0)};
    case 9:
      return end(payload);
    default:
      return std::nullopt;
  }
}

}  // namespace gpu_platform::model
