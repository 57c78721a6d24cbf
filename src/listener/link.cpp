#include "listener/link.h"

#include <algorithm>

#include "base/codec.h"
#include "base/message_fields.h"

namespace gpu_platform::listener {

namespace {

using base::FieldsOf;

// The numbers of the messages: their places in ToListener from 1, and after them in FromListener.
template <class Message>
constexpr std::size_t kFirst = 1;
template <>
constexpr std::size_t kFirst<FromListener> = 1 + std::variant_size_v<ToListener>;

constexpr std::size_t kMaxNames = 64;
constexpr std::size_t kMaxName = 512;
constexpr std::size_t kMaxGuards = 32;

std::unexpected<base::Error> damaged() {
  return base::fail(base::ErrorCode::kDataLoss, "the message is damaged");
}

// One printable line, as everything that may come into the daemon's log.
bool is_line(std::string_view text, std::size_t max) {
  return text.size() <= max &&
         std::ranges::none_of(text, [](char c) { return c < 0x20 || c == 0x7f; });
}

void line(auto& f, auto& text, std::size_t max) {
  f.text(text);
  f.check(is_line(text, max));
}

void bytes(auto& f, auto& text, std::size_t max) {
  f.text(text);
  f.check(text.size() <= max);
}

void names(auto& f, auto& list) {
  f.list(list, [&](auto& name) { line(f, name, kMaxName); }, kMaxNames);
}

void fields(auto& f, FieldsOf<Settings> auto& m) {
  f.number(m.version);
  f.number(m.threads);
  f.number(m.connections);
  f.number(m.connections_per_address);
  f.number(m.body_bytes);
  f.flag(m.asks_for_certificates);
  names(f, m.host_names);
  names(f, m.web_origins);
}

void fields(auto& f, FieldsOf<Listen> auto& m) {
  f.choice(m.door, kDoors);
  f.flag(m.has_tls);
  line(f, m.address, kMaxAddress);
}

void fields(auto& f, FieldsOf<CertificateTexts> auto& m) {
  bytes(f, m.chain, kMaxPem);
  bytes(f, m.key, kMaxPem);
}

void fields(auto&, FieldsOf<Begin> auto&) {}

void fields(auto& f, FieldsOf<Begun> auto& m) {
  const auto guard = [&](auto& one) {
    line(f, one.name, kMaxNote);
    f.flag(one.is_held);
    line(f, one.why, kMaxNote);
  };
  f.number(m.version);
  f.list(m.guards, guard, kMaxGuards);
}

void fields(auto& f, FieldsOf<Open> auto& m) {
  f.choice(m.credential.kind, static_cast<std::size_t>(Credential::Kind::kCertificate) + 1);
  bytes(f, m.credential.secret, kMaxSecret);
  line(f, m.credential.address, kMaxAddress);
}

void fields(auto& f, FieldsOf<Note> auto& m) {
  f.flag(m.is_warning);
  line(f, m.text, kMaxNote);
}

template <class Message>
std::string encoded(const Message& message) {
  std::string bytes;
  base::Encoder out(bytes);
  out.u64(kFirst<Message> + message.index());
  base::FieldWriter writer(out);
  std::visit([&](const auto& one) { fields(writer, one); }, message);
  return bytes;
}

template <class Message, std::size_t I = 0>
base::Result<Message> decoded(std::uint64_t number, base::Decoder& in) {
  if constexpr (I == std::variant_size_v<Message>) {
    return damaged();
  } else {
    if (number != kFirst<Message> + I) return decoded<Message, I + 1>(number, in);
    std::variant_alternative_t<I, Message> message;
    base::FieldReader reader(in);
    fields(reader, message);
    if (!in.ok() || !in.at_end()) return damaged();
    return message;
  }
}

}  // namespace

std::string encode(const ToListener& message) {
  return encoded(message);
}

std::string encode(const FromListener& message) {
  return encoded(message);
}

base::Result<ToListener> decode_to_listener(std::string_view bytes_in) {
  if (bytes_in.size() > kMaxToListener) return damaged();
  base::Decoder in(bytes_in);
  const std::uint64_t number = in.u64();
  return decoded<ToListener>(number, in);
}

base::Result<FromListener> decode_from_listener(std::string_view bytes_in) {
  if (bytes_in.size() > kMaxFromListener) return damaged();
  base::Decoder in(bytes_in);
  const std::uint64_t number = in.u64();
  return decoded<FromListener>(number, in);
}

}  // namespace gpu_platform::listener
