#include "listener/link.h"

#include <algorithm>

#include "base/codec.h"

namespace gpu_platform::listener {

namespace {

using base::Decoder;
using base::Encoder;

enum class Kind : std::uint64_t {
  kSettings = 1,
  kListen = 2,
  kCertificateTexts = 3,
  kBegin = 4,
  kBegun = 5,
  kOpen = 6,
  kNote = 7,
};

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

std::string line(Decoder& in, std::size_t max) {
  const std::string_view text = in.text();
  if (!is_line(text, max)) in.reject();
  return in.ok() ? std::string(text) : std::string();
}

std::string bytes(Decoder& in, std::size_t max) {
  const std::string_view text = in.text();
  if (text.size() > max) in.reject();
  return in.ok() ? std::string(text) : std::string();
}

std::uint32_t u32(Decoder& in) {
  const std::uint64_t value = in.u64();
  if (value > UINT32_MAX) in.reject();
  return static_cast<std::uint32_t>(value);
}

void put(Encoder& out, const std::vector<std::string>& names) {
  out.u64(names.size());
  for (const std::string& name : names) out.text(name);
}

std::vector<std::string> take_names(Decoder& in) {
  const std::size_t count = in.count();
  if (count > kMaxNames) in.reject();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count && in.ok(); ++i) names.push_back(line(in, kMaxName));
  return names;
}

void put(Encoder& out, const Settings& settings) {
  out.u64(static_cast<std::uint64_t>(Kind::kSettings));
  out.u64(settings.version);
  out.u64(settings.threads);
  out.u64(settings.connections);
  out.u64(settings.connections_per_address);
  out.u64(settings.body_bytes);
  out.boolean(settings.asks_for_certificates);
  put(out, settings.host_names);
  put(out, settings.web_origins);
}

Settings take_settings(Decoder& in) {
  Settings settings;
  settings.version = u32(in);
  settings.threads = u32(in);
  settings.connections = in.u64();
  settings.connections_per_address = in.u64();
  settings.body_bytes = in.u64();
  settings.asks_for_certificates = in.boolean();
  settings.host_names = take_names(in);
  settings.web_origins = take_names(in);
  return settings;
}

void put(Encoder& out, const Listen& listen) {
  out.u64(static_cast<std::uint64_t>(Kind::kListen));
  out.u64(static_cast<std::uint64_t>(listen.door));
  out.boolean(listen.has_tls);
  out.text(listen.address);
}

Listen take_listen(Decoder& in) {
  Listen listen;
  const std::uint64_t door = in.u64();
  if (door >= kDoors) in.reject();
  listen.door = static_cast<Door>(door);
  listen.has_tls = in.boolean();
  listen.address = line(in, kMaxAddress);
  return listen;
}

void put(Encoder& out, const CertificateTexts& texts) {
  out.u64(static_cast<std::uint64_t>(Kind::kCertificateTexts));
  out.text(texts.chain);
  out.text(texts.key);
}

void put(Encoder& out, const Begin&) {
  out.u64(static_cast<std::uint64_t>(Kind::kBegin));
}

void put(Encoder& out, const Begun& begun) {
  out.u64(static_cast<std::uint64_t>(Kind::kBegun));
  out.u64(begun.version);
  out.u64(begun.guards.size());
  for (const Guard& guard : begun.guards) {
    out.text(guard.name);
    out.boolean(guard.is_held);
    out.text(guard.why);
  }
}

Begun take_begun(Decoder& in) {
  Begun begun;
  begun.version = u32(in);
  const std::size_t count = in.count();
  if (count > kMaxGuards) in.reject();
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    Guard guard;
    guard.name = line(in, kMaxNote);
    guard.is_held = in.boolean();
    guard.why = line(in, kMaxNote);
    begun.guards.push_back(std::move(guard));
  }
  return begun;
}

void put(Encoder& out, const Open& open) {
  out.u64(static_cast<std::uint64_t>(Kind::kOpen));
  out.u64(static_cast<std::uint64_t>(open.credential.kind));
  out.text(open.credential.secret);
  out.text(open.credential.address);
}

Open take_open(Decoder& in) {
  Open open;
  const std::uint64_t kind = in.u64();
  if (kind > static_cast<std::uint64_t>(Credential::Kind::kCertificate)) in.reject();
  open.credential.kind = static_cast<Credential::Kind>(kind);
  open.credential.secret = bytes(in, kMaxSecret);
  open.credential.address = line(in, kMaxAddress);
  return open;
}

void put(Encoder& out, const Note& note) {
  out.u64(static_cast<std::uint64_t>(Kind::kNote));
  out.boolean(note.is_warning);
  out.text(note.text);
}

Note take_note(Decoder& in) {
  Note note;
  note.is_warning = in.boolean();
  note.text = line(in, kMaxNote);
  return note;
}

std::string encoded(const auto& message) {
  std::string bytes;
  Encoder out(bytes);
  std::visit([&](const auto& one) { put(out, one); }, message);
  return bytes;
}

template <class Message>
base::Result<Message> finished(Message message, const Decoder& in) {
  if (!in.ok() || !in.at_end()) return damaged();
  return message;
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
  Decoder in(bytes_in);
  switch (static_cast<Kind>(in.u64())) {
    case Kind::kSettings:
      return finished<ToListener>(take_settings(in), in);
    case Kind::kListen:
      return finished<ToListener>(take_listen(in), in);
    case Kind::kCertificateTexts: {
      CertificateTexts texts;
      texts.chain = bytes(in, kMaxPem);
      texts.key = bytes(in, kMaxPem);
      return finished<ToListener>(std::move(texts), in);
    }
    case Kind::kBegin:
      return finished<ToListener>(Begin{}, in);
    default:
      return damaged();
  }
}

base::Result<FromListener> decode_from_listener(std::string_view bytes_in) {
  if (bytes_in.size() > kMaxFromListener) return damaged();
  Decoder in(bytes_in);
  switch (static_cast<Kind>(in.u64())) {
    case Kind::kBegun:
      return finished<FromListener>(take_begun(in), in);
    case Kind::kOpen:
      return finished<FromListener>(take_open(in), in);
    case Kind::kNote:
      return finished<FromListener>(take_note(in), in);
    default:
      return damaged();
  }
}

}  // namespace gpu_platform::listener
