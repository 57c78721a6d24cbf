#include "listener/host/listener_host.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "listener/host/link_budget.h"
#include "os/child_process.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/packet_socket.h"

namespace gpu_platform::listener {

namespace {

constexpr int kBacklog = 1024;
// A listener that has lived so long has not died of how it was started.
constexpr std::int64_t kSoundLifeMs = 60'000;
constexpr std::int64_t kEndGraceMs = 2'000;
constexpr std::int64_t kTakeMs = 2'000;  // for the listener to take a message

struct OpenPlace {
  os::Descriptor socket;
  Listen listen;
};

std::string text_of(const Place& place) {
  const bool is_v6 = place.host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", place.host, place.port)
               : fmt::format("{}:{}", place.host, place.port);
}

base::Result<OpenPlace> open_place(const Place& place, bool has_tls) {
  const std::string text = text_of(place);
  const auto fail = [&](std::string_view why) {
    constexpr std::string_view kKeys[] = {"api.rest.address", "api.grpc.address"};
    const std::string_view key = kKeys[static_cast<std::size_t>(place.door)];
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("{}: {}: {}", key, text, why), std::string(key));
  };
  sockaddr_in6 v6{};
  sockaddr_in v4{};
  v6.sin6_family = AF_INET6;
  v4.sin_family = AF_INET;
  v6.sin6_port = v4.sin_port = htons(place.port);
  const bool is_v4 = ::inet_pton(AF_INET, place.host.c_str(), &v4.sin_addr) == 1;
  if (!is_v4 && ::inet_pton(AF_INET6, place.host.c_str(), &v6.sin6_addr) != 1) {
    return fail("no numeric address");
  }
  const int family = is_v4 ? AF_INET : AF_INET6;
  os::Descriptor socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return fail(::strerrordesc_np(errno));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // The same for any default of the host: "[::]" is IPv6 alone.
  if (!is_v4) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  const auto* address =
      is_v4 ? reinterpret_cast<const sockaddr*>(&v4) : reinterpret_cast<const sockaddr*>(&v6);
  const socklen_t size = is_v4 ? sizeof v4 : sizeof v6;
  if (::bind(socket.get(), address, size) != 0 || ::listen(socket.get(), kBacklog) != 0) {
    return fail(::strerrordesc_np(errno));
  }
  return OpenPlace{std::move(socket), {place.door, has_tls, text}};
}

struct Child {
  pid_t pid = 0;
  os::Descriptor pidfd;
  os::Descriptor link;
  std::int64_t began_ms = 0;
};

// It gets the link, stderr for what goes wrong at its start, and nothing else: no descriptor of the
// daemon and no environment.
base::Result<Child> spawn(const ListenerHostOptions& options) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return std::unexpected(base::system_error("socketpair", errno));
  }
  Child child;
  child.link = os::Descriptor(pair[0]);
  // One that takes nothing is not waited for.
  const timeval timeout{kTakeMs / 1000, 0};
  ::setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  const os::Descriptor theirs(pair[1]);
  std::vector<std::string> words = {options.program};
  if (options.user) {
    words.insert(words.end(), {"--uid", fmt::format("{}", options.user->uid), "--gid",
                               fmt::format("{}", options.user->gid)});
  }
  const auto pid = os::start_child_process(
      {.words = std::move(words), .environment = std::vector<std::string>(), .link = theirs.get()});
  if (!pid) return std::unexpected(base::system_error("start " + options.program, pid.error()));
  child.pid = *pid;
  child.began_ms = os::monotonic_ms();
  child.pidfd = os::Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  if (child.pidfd.is_open()) return child;
  const int open_error = errno;
  ::kill(child.pid, SIGKILL);
  ::waitpid(child.pid, nullptr, 0);
  return std::unexpected(base::system_error("pidfd_open", open_error));
}

}  // namespace

class ListenerHost::Impl {
 public:
  explicit Impl(ListenerHostOptions options) : options_(std::move(options)) {}
  ~Impl() {
    is_stopping_ = true;
    wake();
    if (thread_.joinable()) thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  base::Status start() {
    if (options_.certificate) {
      stamp_ = stamp_of(*options_.certificate);
      TRY_ASSIGN(CheckedCertificate checked,
                 read_certificate(*options_.certificate, os::wall_now()));
      texts_ = std::move(checked.texts);
      if (options_.shows) options_.shows(texts_.chain);
      if (!checked.warning.empty()) options_.tell(true, checked.warning);
    }
    for (const Place& place : options_.places) {
      TRY_ASSIGN(OpenPlace open, open_place(place, options_.certificate.has_value()));
      places_.push_back(std::move(open));
    }
    wake_ = os::Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_.is_open()) return std::unexpected(base::system_error("eventfd", errno));
    thread_ = std::thread([this] { run(); });
    return {};
  }

  void reload() {
    is_reload_asked_ = true;
    wake();
  }
  pid_t pid() const { return pid_; }

 private:
  void wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }

  // The kernel ends the listener with the thread that has started it: this one.
  void run() {
    while (!is_stopping_) {
      if (child_.pid == 0 && os::monotonic_ms() >= start_at_ms_) start_child();
      if (is_reload_asked_.exchange(false)) look_at_certificate(true);
      wait();
    }
    end_child();
  }

  void start_child() {
    auto child = spawn(options_);
    if (!child) return lost(child.error().message);
    child_ = *std::move(child);
    has_begun_ = false;
    pid_ = child_.pid;
    bool is_told = send(options_.settings);
    for (const OpenPlace& place : places_) {
      is_told = is_told && send(place.listen, place.socket.get());
    }
    if (options_.certificate) is_told = is_told && send(texts_);
    if (!is_told || !send(Begin{})) break_off("it takes no orders");
  }

  bool send(ToListener message, int descriptor = -1) {
    return os::send_packet(child_.link.get(), encode(message), descriptor);
  }

  void wait() {
    const bool has_child = child_.pid != 0;
    pollfd waits[] = {{wake_.get(), POLLIN, 0},
                      {has_child ? child_.link.get() : -1, POLLIN, 0},
                      {has_child ? child_.pidfd.get() : -1, POLLIN, 0}};
    ::poll(waits, std::size(waits), timeout_ms());
    std::uint64_t ignored = 0;
    (void)!::read(wake_.get(), &ignored, sizeof ignored);
    if (has_child && waits[1].revents != 0) receive();
    if (has_child && child_.pid != 0 && waits[2].revents != 0) reap();
    if (options_.certificate && os::monotonic_ms() >= look_at_ms_) look_at_certificate(false);
  }

  int timeout_ms() const {
    std::int64_t next = options_.certificate ? look_at_ms_ : INT64_MAX;
    if (child_.pid == 0) next = std::min(next, start_at_ms_);
    if (next == INT64_MAX) return -1;
    return static_cast<int>(std::clamp<std::int64_t>(next - os::monotonic_ms(), 0, 60'000));
  }

  // A few at a time, so that one that talks without end keeps nothing from happening.
  void receive() {
    constexpr int kAtOnce = 64;
    for (int i = 0; i < kAtOnce && child_.pid != 0; ++i) {
      const os::Packet packet =
          os::receive_packet(child_.link.get(), buffer_, sizeof buffer_, MSG_DONTWAIT);
      if (packet.kind == os::Packet::Kind::kNothing) return;
      if (packet.kind == os::Packet::Kind::kClosed) return break_off("it has closed its link");
      take(packet);
    }
  }

  void take(const os::Packet& packet) {
    os::Descriptor descriptor(packet.fd);
    auto message = decode_from_listener(packet.bytes);
    if (!message) return break_off("it broke the protocol");
    if (auto* open = std::get_if<Open>(&*message)) return take_open(*open, std::move(descriptor));
    if (const auto* note = std::get_if<Note>(&*message)) {
      if (!budget_.take_note(os::monotonic_ms())) return break_off("it logs too much");
      return options_.tell(note->is_warning, "listener: " + note->text);
    }
    if (std::exchange(has_begun_, true)) return break_off("it broke the protocol");
    tell_begun(std::get<Begun>(*message));
  }

  void take_open(Open& open, os::Descriptor descriptor) {
    int domain = 0;
    int type = 0;
    socklen_t size = sizeof domain;
    const bool is_stream =
        ::getsockopt(descriptor.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
        ::getsockopt(descriptor.get(), SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
        domain == AF_UNIX && type == SOCK_STREAM;
    if (!is_stream) return break_off("it sent no stream socket");
    // The client is told to try again when the other end is closed.
    if (!budget_.take_link(open.credential, os::monotonic_ms())) return note_dropped();
    options_.open(descriptor.release(), std::move(open.credential));
  }

  // Told of now and then: a line for each would be what the budget is against.
  void note_dropped() {
    constexpr std::int64_t kBetweenLinesMs = 60'000;
    ++dropped_links_;
    const std::int64_t now = os::monotonic_ms();
    if (now < tell_dropped_at_ms_) return;
    tell_dropped_at_ms_ = now + kBetweenLinesMs;
    options_.tell(true, fmt::format("listener asks for too many connections refused={}",
                                    std::exchange(dropped_links_, 0)));
  }

  void tell_begun(const Begun& begun) {
    if (begun.version != kLinkVersion) return break_off("it is of another version");
    std::string places;
    for (const OpenPlace& place : places_) places += " " + place.listen.address;
    std::string held;
    for (const Guard& guard : begun.guards) {
      if (guard.is_held) held += " " + guard.name;
    }
    options_.tell(
        false, fmt::format("listener pid={} addresses=\"{}\" tls={} held=\"{}\"", child_.pid,
                           places.empty() ? places : places.substr(1),
                           options_.certificate.has_value(), held.empty() ? held : held.substr(1)));
    for (const Guard& guard : begun.guards) {
      if (guard.is_held) continue;
      options_.tell(true,
                    fmt::format("listener not_held=\"{}\" why=\"{}\"", guard.name, guard.why));
    }
  }

  // Ends a listener that does not end by itself.
  void break_off(std::string_view why) {
    ::kill(child_.pid, SIGKILL);
    ::waitpid(child_.pid, nullptr, 0);
    lost(why);
  }

  void reap() {
    int status = 0;
    if (::waitpid(child_.pid, &status, WNOHANG) != child_.pid) return;
    lost(WIFSIGNALED(status) ? fmt::format("killed by signal {}", WTERMSIG(status))
                             : fmt::format("ended with code {}", WEXITSTATUS(status)));
  }

  void lost(std::string_view why) {
    const std::int64_t now = os::monotonic_ms();
    const std::int64_t first = base::whole_milliseconds(options_.min_restart_delay);
    const std::int64_t last = base::whole_milliseconds(options_.max_restart_delay);
    const bool was_sound = child_.pid != 0 && now - child_.began_ms >= kSoundLifeMs;
    delay_ms_ = was_sound || delay_ms_ == 0 ? first : std::min(delay_ms_ * 2, last);
    start_at_ms_ = now + delay_ms_;
    child_ = Child();
    pid_ = 0;
    options_.tell(true, fmt::format("listener lost why=\"{}\" next_in_ms={}", why, delay_ms_));
  }

  void look_at_certificate(bool is_asked) {
    look_at_ms_ = os::monotonic_ms() + base::whole_milliseconds(options_.certificate_interval);
    if (!options_.certificate) return;
    std::string stamp = stamp_of(*options_.certificate);
    if (!is_asked && stamp == stamp_) return;
    stamp_ = std::move(stamp);
    auto checked = read_certificate(*options_.certificate, os::wall_now());
    if (!checked) {
      return options_.tell(true, "certificate not reloaded, the former one stays in force: " +
                                     checked.error().message);
    }
    if (!checked->warning.empty()) options_.tell(true, checked->warning);
    if (checked->texts == texts_) return;
    texts_ = std::move(checked->texts);
    if (options_.shows) options_.shows(texts_.chain);
    if (child_.pid != 0 && !send(texts_)) break_off("it takes no certificate");
  }

  void end_child() {
    if (child_.pid == 0) return;
    ::shutdown(child_.link.get(), SHUT_RDWR);
    pollfd ended{child_.pidfd.get(), POLLIN, 0};
    if (::poll(&ended, 1, static_cast<int>(kEndGraceMs)) <= 0) ::kill(child_.pid, SIGKILL);
    ::waitpid(child_.pid, nullptr, 0);
    pid_ = 0;
  }

  const ListenerHostOptions options_;
  std::vector<OpenPlace> places_;
  CertificateTexts texts_;
  std::string stamp_;
  std::int64_t look_at_ms_ = 0;
  Child child_;
  bool has_begun_ = false;  // the child has said so
  LinkBudget budget_;
  std::uint64_t dropped_links_ = 0;  // since it was told
  std::int64_t tell_dropped_at_ms_ = 0;
  std::int64_t start_at_ms_ = 0;
  std::int64_t delay_ms_ = 0;
  os::Descriptor wake_;
  std::atomic<bool> is_stopping_ = false;
  std::atomic<bool> is_reload_asked_ = false;
  std::atomic<pid_t> pid_ = 0;
  char buffer_[kMaxFromListener];
  std::thread thread_;
};

ListenerHost::ListenerHost(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ListenerHost::~ListenerHost() = default;

base::Result<std::unique_ptr<ListenerHost>> ListenerHost::start(ListenerHostOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  TRY(impl->start());
  return std::unique_ptr<ListenerHost>(new ListenerHost(std::move(impl)));
}

void ListenerHost::reload() {
  impl_->reload();
}
pid_t ListenerHost::pid() const {
  return impl_->pid();
}

}  // namespace gpu_platform::listener
