#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "http/server.h"

namespace gpu_platform::client {

// A daemon for tests: listens on a Unix socket in a directory of its own and gives each request to
// a function, each connection on a thread of its own.
class FakeServer {
 public:
  struct Request {
    std::string method;
    std::string target;
    std::string head;  // all header lines
    std::string body;
    int fd = -1;  // to answer in pieces
  };
  // What to send; empty: the connection ends without an answer.
  using Handler = std::function<std::string(const Request&)>;

  explicit FakeServer(Handler handler);
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  const std::string& path() const { return path_; }
  http::Server server() const { return {.kind = http::Server::Kind::kSocket, .path = path_}; }
  // "METHOD target" of each request so far.
  std::vector<std::string> requests() const;

 private:
  void accept_all();
  void serve(int fd);

  Handler handler_;
  std::string directory_;
  std::string path_;
  int listener_ = -1;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

// Whole answers.
std::string json_answer(std::string_view body, int status = 200);
// The parts of an event stream.
std::string stream_head();
std::string stream_event(std::string_view data, std::string_view name = "output");
std::string stream_end();

void send_text(int fd, std::string_view text);

}  // namespace gpu_platform::client
