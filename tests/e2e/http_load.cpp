#include "http_load.h"

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

struct Client {
  int fd = -1;
  std::string received;
  Clock::time_point sent;
};

int connect_to(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    std::perror("connect");
    std::exit(1);
  }
  return fd;
}

// Length of the complete answer at the front of `bytes`, 0 while it is not complete.
std::size_t answer_length(const std::string& bytes) {
  const std::size_t head = bytes.find("\r\n\r\n");
  if (head == std::string::npos) return 0;
  const std::size_t field = bytes.find("Content-Length: ");
  std::size_t length = 0;
  if (field != std::string::npos && field < head) {
    const char* begin = bytes.data() + field + 16;
    std::from_chars(begin, bytes.data() + head, length);
  }
  const std::size_t total = head + 4 + length;
  return bytes.size() >= total ? total : 0;
}

void send_all(int fd, const std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + sent, bytes.size() - sent);
    if (n <= 0) {
      std::perror("write");
      std::exit(1);
    }
    sent += static_cast<std::size_t>(n);
  }
}

}  // namespace

LoadResult run_load(const LoadOptions& options,
                    const std::function<std::string(std::size_t)>& request) {
  LoadResult result;
  result.latencies_ms.reserve(options.requests);
  std::vector<Client> clients(options.clients);
  const int poll_fd = epoll_create1(EPOLL_CLOEXEC);
  std::size_t next = 0;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    clients[i].fd = connect_to(options.socket);
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, clients[i].fd, &event);
  }
  const double cpu_before = cpu_seconds();
  const auto begin = Clock::now();
  for (Client& client : clients) {
    if (next == options.requests) break;
    client.sent = Clock::now();
    send_all(client.fd, request(next++));
  }
  std::array<epoll_event, 64> events;
  std::array<char, 65536> buffer;
  while (result.answered < options.requests) {
    const int count = epoll_wait(poll_fd, events.data(), static_cast<int>(events.size()), -1);
    for (int e = 0; e < count; ++e) {
      Client& client = clients[events[static_cast<std::size_t>(e)].data.u64];
      const ssize_t n = read(client.fd, buffer.data(), buffer.size());
      if (n <= 0) {
        std::fprintf(stderr, "the daemon closed a connection\n");
        std::exit(1);
      }
      client.received.append(buffer.data(), static_cast<std::size_t>(n));
      const std::size_t length = answer_length(client.received);
      if (length == 0) continue;
      const auto now = Clock::now();
      result.latencies_ms.push_back(
          std::chrono::duration<double, std::milli>(now - client.sent).count());
      ++result.answered;
      if (client.received.compare(9, 1, "2") != 0) {
        if (result.refused++ == 0) result.first_refusal = client.received.substr(0, length);
      }
      client.received.erase(0, length);
      if (next < options.requests) {
        client.sent = now;
        send_all(client.fd, request(next++));
      }
    }
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  result.generator_cpu_seconds = cpu_seconds() - cpu_before;
  for (const Client& client : clients) close(client.fd);
  close(poll_fd);
  return result;
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
