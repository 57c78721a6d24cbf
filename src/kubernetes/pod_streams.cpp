#include "kubernetes/pod_streams.h"

#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "kubernetes/pod_channel.h"
#include "kubernetes/web_socket.h"

namespace gpu_platform::kubernetes {

namespace asio = boost::asio;

class PodStreams::Impl {
 public:
  Impl(Endpoint endpoint, PodStreamLimits limits)
      : endpoint_(std::move(endpoint)), limits_(limits), work_(asio::make_work_guard(io_)) {
    thread_ = std::thread([this] { io_.run(); });
  }

  ~Impl() {
    io_.stop();
    thread_.join();
  }

  void run(PodStream stream, Credential credential, os::Descriptor channel) {
    asio::post(io_, [this, stream = std::move(stream), credential = std::move(credential),
                     channel = std::move(channel)]() mutable {
      begin(std::move(stream), std::move(credential), std::move(channel));
    });
  }

 private:
  void begin(PodStream stream, Credential credential, os::Descriptor channel) {
    const auto made =
        std::make_shared<PodChannel>(io_, std::move(stream), limits_, std::move(channel));
    if (!endpoint_.proxy_url.empty()) {
      return made->refuse(
          "the cluster is reached through a proxy, which channels into pods cannot use yet");
    }
    auto socket = WebSocket::make(io_, endpoint_, std::move(credential));
    if (!socket) return made->refuse(socket.error().message);
    made->begin(*std::move(socket));
  }

  const Endpoint endpoint_;
  const PodStreamLimits limits_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;  // last: it uses all others
};

PodStreams::PodStreams(Endpoint endpoint, PodStreamLimits limits)
    : impl_(std::make_unique<Impl>(std::move(endpoint), limits)) {}
PodStreams::~PodStreams() = default;

void PodStreams::run(PodStream stream, Credential credential, os::Descriptor channel) {
  impl_->run(std::move(stream), std::move(credential), std::move(channel));
}

}  // namespace gpu_platform::kubernetes
