#include "client/fake_server_test.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"

namespace gpu_platform::client {

namespace {

std::size_t content_length(const std::string& head) {
  constexpr std::string_view kName = "Content-Length: ";
  const std::size_t at = head.find(kName);
  return at == std::string::npos ? 0 : std::stoul(head.substr(at + kName.size()));
}

}  // namespace

FakeServer::FakeServer(Handler handler) : handler_(std::move(handler)) {
  std::string name = (std::filesystem::temp_directory_path() / "gp-cli-XXXXXX").string();
  CHECK(::mkdtemp(name.data()) != nullptr);
  directory_ = name;
  path_ = directory_ + "/s";
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  CHECK(path_.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
  CHECK(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  CHECK(::listen(listener_, 16) == 0);
  acceptor_ = std::thread([this] { accept_all(); });
}

FakeServer::~FakeServer() {
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  ::close(listener_);
  std::filesystem::remove_all(directory_);
}

std::vector<std::string> FakeServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void FakeServer::accept_all() {
  while (true) {
    const int fd = ::accept(listener_, nullptr, nullptr);
    if (fd < 0) return;
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void FakeServer::serve(int fd) {
  std::string bytes;
  char buffer[4096];
  std::size_t head_end = std::string::npos;
  while (true) {
    head_end = bytes.find("\r\n\r\n");
    if (head_end != std::string::npos &&
        bytes.size() >= head_end + 4 + content_length(bytes.substr(0, head_end))) {
      break;
    }
    const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got <= 0) {
      ::close(fd);
      return;
    }
    bytes.append(buffer, static_cast<std::size_t>(got));
  }
  Request request;
  request.method = bytes.substr(0, bytes.find(' '));
  const std::size_t target = request.method.size() + 1;
  request.target = bytes.substr(target, bytes.find(' ', target) - target);
  request.head = bytes.substr(0, head_end);
  request.body = bytes.substr(head_end + 4);
  request.fd = fd;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request.method + " " + request.target);
  }
  send_text(fd, handler_(request));
  ::close(fd);
}

std::string json_answer(std::string_view body, int status) {
  return fmt::format(
      "HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: "
      "close\r\n\r\n{}",
      status, body.size(), body);
}

std::string stream_head() {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
}

std::string stream_event(std::string_view data, std::string_view name) {
  const std::string event = fmt::format("event: {}\ndata: {}\n\n", name, data);
  return fmt::format("{:x}\r\n{}\r\n", event.size(), event);
}

std::string stream_end() {
  return "0\r\n\r\n";
}

void send_text(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace gpu_platform::client
