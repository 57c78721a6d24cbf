#include "execution/container/fake_engine_test.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "os/descriptor.h"

namespace gpu_platform::execution {

namespace {

constexpr int kSliceMs = 20;

bool has_input(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  return poll(&waiting, 1, kSliceMs) > 0;
}

std::size_t body_size(const std::string& head) {
  const std::size_t at = head.find("Content-Length: ");
  return at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
}

}  // namespace

bool EngineRequest::is(const std::string& method_and_path) const {
  std::string path = target.substr(0, target.find('?'));
  if (path.starts_with("/v1.")) path.erase(0, path.find('/', 1));
  return method + " " + path == method_and_path;
}

FakeEngine::FakeEngine(Answer answer) : answer_(std::move(answer)) {
  char folder[] = "/tmp/fake-engine-XXXXXX";
  CHECK(mkdtemp(folder) != nullptr);
  folder_ = folder;
  path_ = folder_ + "/engine.sock";
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path_.data(), path_.size());
  CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  CHECK(listen(listener_, 64) == 0);
  server_ = std::thread([this] { serve(); });
}

FakeEngine::~FakeEngine() {
  is_over_ = true;
  server_.join();
  for (std::thread& worker : workers_) worker.join();
  close(listener_);
  unlink(path_.c_str());
  rmdir(folder_.c_str());
}

std::vector<EngineRequest> FakeEngine::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void FakeEngine::serve() {
  while (!is_over_) {
    if (!has_input(listener_)) continue;
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) workers_.emplace_back([this, connection] { answer_one(connection); });
  }
}

void FakeEngine::answer_one(int connection) {
  const os::Descriptor held(connection);
  EngineRequest request;
  std::string all;
  std::size_t end = std::string::npos;
  while (end == std::string::npos || all.size() < end + 4 + body_size(request.head)) {
    char buffer[4096];
    if (is_over_) return;
    if (!has_input(connection)) continue;
    const ssize_t got = read(connection, buffer, sizeof buffer);
    if (got <= 0) return;
    all.append(buffer, static_cast<std::size_t>(got));
    end = all.find("\r\n\r\n");
    if (end != std::string::npos) request.head = all.substr(0, end);
  }
  request.body = all.substr(end + 4);
  request.method = all.substr(0, all.find(' '));
  const std::size_t target = request.method.size() + 1;
  request.target = all.substr(target, all.find(' ', target) - target);
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
  }
  const std::string answer = answer_(request);
  if (answer != kHang) {
    send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
    return;
  }
  while (!is_over_ && !has_input(connection)) {
  }
}

std::string http_answer(int status, const std::string& body) {
  return fmt::format(
      "HTTP/1.1 {} Answer\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      status, body.size(), body);
}

std::string usual_answer(const EngineRequest& request) {
  if (request.is("GET /version")) {
    return http_answer(200, R"({"ApiVersion":"1.41","MinAPIVersion":"1.24"})");
  }
  if (request.is("GET /info")) return http_answer(200, R"({"CgroupDriver":"cgroupfs"})");
  return http_answer(404, R"({"message":"no such thing"})");
}

}  // namespace gpu_platform::execution
