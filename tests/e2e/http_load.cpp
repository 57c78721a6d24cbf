#include "http_load.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace gpu_platform::e2e {

namespace {

using Clock = std::chrono::steady_clock;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

int connect_to(const LoadOptions& options) {
  const bool has_tls = options.tls_port != 0;
  const int fd = socket(has_tls ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) give_up("socket");
  if (has_tls) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options.tls_port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      give_up("connect");
    }
    return fd;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, options.socket.c_str(), sizeof address.sun_path - 1);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    give_up("connect");
  }
  return fd;
}

SSL_CTX* tls_context() {
  static SSL_CTX* const context = [] {
    SSL_CTX* const made = SSL_CTX_new(TLS_client_method());
    if (made == nullptr) give_up("TLS");
    SSL_CTX_set_mode(made, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
    return made;
  }();
  return context;
}

// One connection. Its writes wait, its reads take what is there.
class Client {
 public:
  explicit Client(const LoadOptions& options) : fd_(connect_to(options)) {
    if (options.tls_port == 0) return;
    ssl_.reset(SSL_new(tls_context()));
    SSL_set_fd(ssl_.get(), fd_);
    if (SSL_connect(ssl_.get()) != 1) give_up("TLS handshake");
  }
  ~Client() {
    ssl_.reset();
    if (fd_ >= 0) close(fd_);
  }
  Client(Client&& other) noexcept
      : received(std::move(other.received)),
        sent(other.sent),
        fd_(std::exchange(other.fd_, -1)),
        ssl_(std::move(other.ssl_)) {}
  Client& operator=(Client&&) = delete;

  int descriptor() const { return fd_; }

  void send_all(const std::string& bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const int left = static_cast<int>(bytes.size() - done);
      const ssize_t n = ssl_ ? SSL_write(ssl_.get(), bytes.data() + done, left)
                             : write(fd_, bytes.data() + done, bytes.size() - done);
      if (n <= 0) give_up("write");
      done += static_cast<std::size_t>(n);
    }
  }
  // Once it is readable: appends what has come to `received`.
  void receive() {
    thread_local std::array<char, 65536> buffer;
    bool has_more = true;
    while (has_more) {
      const ssize_t n = ssl_ ? SSL_read(ssl_.get(), buffer.data(), static_cast<int>(buffer.size()))
                             : read(fd_, buffer.data(), buffer.size());
      if (n <= 0) {
        std::fprintf(stderr, "the daemon closed a connection; left: %s\n", received.c_str());
        std::exit(1);
      }
      received.append(buffer.data(), static_cast<std::size_t>(n));
      has_more = ssl_ && SSL_pending(ssl_.get()) > 0;
    }
  }

  std::string received;
  Clock::time_point sent;

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  int fd_;
  std::unique_ptr<SSL, Free> ssl_;
};

std::vector<Client> connected(const LoadOptions& options) {
  std::vector<Client> clients;
  clients.reserve(options.clients);
  for (std::size_t i = 0; i < options.clients; ++i) clients.emplace_back(options);
  return clients;
}

int poll_of(const std::vector<Client>& clients) {
  const int poll_fd = epoll_create1(EPOLL_CLOEXEC);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, clients[i].descriptor(), &event);
  }
  return poll_fd;
}

// Length of the complete answer at the front of `bytes`, 0 while it is not complete.
std::size_t answer_length(const std::string& bytes) {
  const std::size_t head = bytes.find("\r\n\r\n");
  if (head == std::string::npos) return 0;
  // Nothing follows the answer, and JSON has no line break of this kind.
  const std::size_t chunked = bytes.find("Transfer-Encoding: chunked");
  if (chunked < head) return bytes.ends_with("\r\n0\r\n\r\n") ? bytes.size() : 0;
  const std::size_t field = bytes.find("Content-Length: ");
  std::size_t length = 0;
  if (field != std::string::npos && field < head) {
    const char* begin = bytes.data() + field + 16;
    std::from_chars(begin, bytes.data() + head, length);
  }
  const std::size_t total = head + 4 + length;
  return bytes.size() >= total ? total : 0;
}

// Takes the answer, which is `length` bytes, off the client.
void note_answer(Client& client, std::size_t length, Clock::time_point now, LoadResult& result) {
  result.latencies_ms.push_back(
      std::chrono::duration<double, std::milli>(now - client.sent).count());
  ++result.answered;
  if (client.received.compare(9, 1, "2") != 0) {
    if (result.refused++ == 0) result.first_refusal = client.received.substr(0, length);
  }
  client.received.erase(0, length);
}

}  // namespace

LoadResult run_load(const LoadOptions& options,
                    const std::function<std::string(std::size_t)>& request) {
  LoadResult result;
  result.latencies_ms.reserve(options.requests);
  std::vector<Client> clients = connected(options);
  const int poll_fd = poll_of(clients);
  std::size_t next = 0;
  const double cpu_before = cpu_seconds();
  const auto begin = Clock::now();
  for (Client& client : clients) {
    if (next == options.requests) break;
    client.sent = Clock::now();
    client.send_all(request(next++));
  }
  std::array<epoll_event, 64> events;
  while (result.answered < options.requests) {
    const int count = epoll_wait(poll_fd, events.data(), static_cast<int>(events.size()), -1);
    for (int e = 0; e < count; ++e) {
      Client& client = clients[events[static_cast<std::size_t>(e)].data.u64];
      client.receive();
      const std::size_t length = answer_length(client.received);
      if (length == 0) continue;
      const auto now = Clock::now();
      note_answer(client, length, now, result);
      if (next < options.requests) {
        client.sent = now;
        client.send_all(request(next++));
      }
    }
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  result.generator_cpu_seconds = cpu_seconds() - cpu_before;
  close(poll_fd);
  return result;
}

class Crowd::Impl {
 public:
  explicit Impl(const LoadOptions& options) : clients(connected(options)) {}
  std::vector<Client> clients;
};

Crowd::Crowd(const LoadOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Crowd::~Crowd() = default;

LoadResult Crowd::ask_all(const std::string& request) {
  LoadResult result;
  for (Client& client : impl_->clients) {
    client.sent = Clock::now();
    client.send_all(request);
    std::size_t length = 0;
    while ((length = answer_length(client.received)) == 0) client.receive();
    note_answer(client, length, Clock::now(), result);
  }
  return result;
}

void follow(const LoadOptions& options, const std::function<std::string(std::size_t)>& request,
            const std::function<void(const std::string& event)>& take,
            const std::atomic<bool>& is_over) {
  std::vector<Client> clients = connected(options);
  const int poll_fd = poll_of(clients);
  const auto take_events = [&](std::string& received) {
    for (std::size_t end = 0; (end = received.find("\n\n")) != std::string::npos;) {
      take(received.substr(0, end));
      received.erase(0, end + 2);
    }
  };
  // One after the other: the daemon looks up a few new clients at once.
  for (std::size_t i = 0; i < clients.size(); ++i) {
    clients[i].send_all(request(i));
    clients[i].receive();
    take_events(clients[i].received);
  }
  std::array<epoll_event, 64> events;
  while (!is_over) {
    const int count = epoll_wait(poll_fd, events.data(), static_cast<int>(events.size()), 100);
    for (int e = 0; e < count; ++e) {
      Client& client = clients[events[static_cast<std::size_t>(e)].data.u64];
      client.receive();
      take_events(client.received);
    }
  }
  close(poll_fd);
}

std::string post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string get(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto index = static_cast<std::size_t>(p / 100 * static_cast<double>(values.size() - 1));
  return values[index];
}

}  // namespace gpu_platform::e2e
