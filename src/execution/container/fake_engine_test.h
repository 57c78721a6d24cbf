#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

// A container engine of a test's own: HTTP on a Unix socket, with the answers that the test wants.

namespace gpu_platform::execution {

struct EngineRequest {
  std::string method;
  std::string target;  // "/v1.41/info"
  std::string head;    // the lines of the header
  std::string body;

  // Whether it is this call, of any version and with any query.
  bool is(const std::string& method_and_path) const;
};

class FakeEngine {
 public:
  // Returns the bytes of the answer; kHang: none, and the connection stays open. Called on a thread
  // of its own for each request.
  using Answer = std::function<std::string(const EngineRequest&)>;
  static inline const std::string kHang = "hang";

  explicit FakeEngine(Answer answer);
  ~FakeEngine();
  FakeEngine(const FakeEngine&) = delete;
  FakeEngine& operator=(const FakeEngine&) = delete;

  const std::string& socket() const { return path_; }
  std::vector<EngineRequest> requests() const;

 private:
  void serve();
  void answer_one(int connection);

  const Answer answer_;
  std::string folder_;
  std::string path_;
  int listener_ = -1;
  std::atomic<bool> is_over_ = false;
  mutable std::mutex mutex_;
  std::vector<EngineRequest> requests_;
  std::vector<std::thread> workers_;
  std::thread server_;
};

// A whole answer of HTTP.
std::string http_answer(int status, const std::string& body);
// What a well-behaved engine answers before there is a container.
std::string usual_answer(const EngineRequest& request);

}  // namespace gpu_platform::execution
