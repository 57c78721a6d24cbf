#pragma once

#include <functional>
#include <mutex>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace gpu_platform::api {

// The way onto an io context from threads that may outlive it.
class Gate {
 public:
  explicit Gate(boost::asio::io_context& io) : io_(io) {}
  // Drops the work when the gate is closed.
  void post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (is_open_) boost::asio::post(io_, std::move(work));
  }
  // Afterwards the context is not touched any more.
  void close() {
    const std::lock_guard lock(mutex_);
    is_open_ = false;
  }

 private:
  boost::asio::io_context& io_;
  std::mutex mutex_;
  bool is_open_ = true;
};

}  // namespace gpu_platform::api
