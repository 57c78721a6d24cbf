#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "listener/confinement.h"
#include "listener/front.h"
#include "listener/link.h"
#include "listener/link_upstream.h"
#include "listener/tls.h"
#include "os/descriptor.h"
#include "os/packet_socket.h"

// gpu-platform-listener: the door to other machines, as a process of its own. The daemon starts it
// with one end of the link (link.h) as descriptor 3.

namespace {

namespace listener = gpu_platform::listener;
namespace os = gpu_platform::os;
namespace base = gpu_platform::base;

constexpr int kLink = 3;
constexpr int kUsage = 2;
constexpr std::uint64_t kOtherFiles = 64;
constexpr std::string_view kHelp =
    "usage: gpu-platform-listener [--uid N --gid N]\n"
    "Takes connections from other machines for gpu-platform serve, which runs it and talks to it\n"
    "over descriptor 3. Started as root, it becomes the user N. Do not run it by hand.\n";

bool parse_number(std::string_view text, std::uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<listener::ConfinementOptions> parse(int argc, char** argv) {
  listener::ConfinementOptions options;
  if (argc == 1) return options;
  options.user = listener::ConfinementOptions::User{};
  const bool is_right = argc == 5 && std::string_view(argv[1]) == "--uid" &&
                        parse_number(argv[2], options.user->uid) &&
                        std::string_view(argv[3]) == "--gid" &&
                        parse_number(argv[4], options.user->gid) && options.user->uid != 0;
  return is_right ? std::optional(options) : std::nullopt;
}

// What is to be done before Begin.
struct Orders {
  listener::Settings settings;
  listener::Tls rest_tls{"http/1.1"};
  listener::Tls grpc_tls{"h2"};
  std::vector<std::pair<os::Descriptor, listener::Listen>> sockets;
};

[[noreturn]] void end(const std::string& why) {
  dprintf(STDERR_FILENO, "gpu-platform-listener: %s\n", why.c_str());
  _exit(1);
}

void note(bool is_warning, std::string text) {
  text.resize(std::min(text.size(), listener::kMaxNote));
  for (char& c : text) {
    if ((c >= 0 && c < 0x20) || c == 0x7f) c = '?';
  }
  os::send_packet(kLink,
                  listener::encode(listener::FromListener(listener::Note{is_warning, text})));
}

struct Received {
  listener::ToListener message;
  os::Descriptor descriptor;
};

// The next message; nothing when the daemon is gone.
std::optional<Received> receive(std::string& buffer) {
  pollfd readable{kLink, POLLIN, 0};
  while (true) {
    ::poll(&readable, 1, -1);
    const os::Packet packet = os::receive_packet(kLink, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (packet.kind == os::Packet::Kind::kClosed) return std::nullopt;
    if (packet.kind == os::Packet::Kind::kNothing) continue;
    os::Descriptor descriptor(packet.fd);
    auto message = listener::decode_to_listener(packet.bytes);
    if (!message) end("the daemon has another version of the protocol");
    return Received{*std::move(message), std::move(descriptor)};
  }
}

base::Status use_certificate(Orders& orders, const listener::CertificateTexts& texts) {
  if (auto used = orders.rest_tls.use(texts.chain, texts.key); !used) return used;
  return orders.grpc_tls.use(texts.chain, texts.key);
}

// False: the daemon is gone.
bool take_orders(Orders& orders, std::string& buffer) {
  while (auto received = receive(buffer)) {
    if (std::holds_alternative<listener::Begin>(received->message)) return true;
    if (const auto* settings = std::get_if<listener::Settings>(&received->message)) {
      if (settings->version != listener::kLinkVersion) end("the daemon is of another version");
      orders.settings = *settings;
      if (settings->asks_for_certificates) {
        orders.rest_tls.ask_for_certificates();
        orders.grpc_tls.ask_for_certificates();
      }
    } else if (const auto* texts = std::get_if<listener::CertificateTexts>(&received->message)) {
      if (const base::Status used = use_certificate(orders, *texts); !used) {
        end(used.error().message);
      }
    } else if (const auto* listen = std::get_if<listener::Listen>(&received->message)) {
      orders.sockets.emplace_back(std::move(received->descriptor), *listen);
    }
  }
  return false;
}

void forget_errors_to_terminal() {
  const os::Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null.get(), fd);
}

}  // namespace

int main(int argc, char** argv) {
  auto confinement = parse(argc, argv);
  if (!confinement) {
    fwrite(kHelp.data(), 1, kHelp.size(), stderr);
    return kUsage;
  }
  ::syscall(SYS_close_range, kLink + 1, ~0U, 0);
  ::fcntl(kLink, F_SETFD, FD_CLOEXEC);
  ::fcntl(kLink, F_SETFL, O_NONBLOCK);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  // Nothing of the host's settings changes what TLS is here.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr);

  std::string buffer(listener::kMaxToListener, '\0');
  Orders orders;
  if (!take_orders(orders, buffer)) return 0;
  confinement->open_files = 2 * orders.settings.connections + kOtherFiles;
  forget_errors_to_terminal();
  auto guards = listener::confine(*confinement);
  if (!guards) {
    note(true, "not confined: " + guards.error().message);
    return 1;
  }
  listener::LinkUpstream upstream(kLink);
  listener::Front front({.settings = orders.settings,
                         .limits = {},
                         .times = {},
                         .warn = [](const std::string& line) { note(true, line); }},
                        upstream, {orders.rest_tls, orders.grpc_tls});
  for (auto& [socket, listen] : orders.sockets) {
    if (const base::Status done = front.listen(std::move(socket), listen); !done) {
      note(true, done.error().message);
      return 1;
    }
  }
  front.start();
  os::send_packet(kLink, listener::encode(listener::FromListener(
                             listener::Begun{listener::kLinkVersion, *std::move(guards)})));
  while (auto received = receive(buffer)) {
    const auto* texts = std::get_if<listener::CertificateTexts>(&received->message);
    if (texts == nullptr) continue;
    const base::Status used = use_certificate(orders, *texts);
    note(!used, used ? "certificate in force" : "certificate refused: " + used.error().message);
  }
  front.stop(std::chrono::seconds(1));
  _exit(0);
}
