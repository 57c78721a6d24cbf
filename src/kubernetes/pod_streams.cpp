#include "kubernetes/pod_streams.h"

#include <algorithm>
#include <map>
#include <string>
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

  void run(PodStream stream, Credential credential, os::Descriptor channel, PodStreamHooks hooks) {
    asio::post(io_, [this, stream = std::move(stream), credential = std::move(credential),
                     channel = std::move(channel), hooks = std::move(hooks)]() mutable {
      if (!join(stream, channel)) {
        begin(std::move(stream), std::move(credential), std::move(channel), std::move(hooks));
      }
    });
  }

  void process_ended(std::string namespace_name, std::string pod) {
    asio::post(io_, [this, key = Key(std::move(namespace_name), std::move(pod))] {
      const auto found = attached_.find(key);
      if (found == attached_.end()) return;
      if (const auto channel = found->second.lock()) channel->process_ended();
    });
  }

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, pod

  // The place of a client at a container's own process.
  std::weak_ptr<PodChannel>& place_of(const PodStream& stream) {
    return attached_[{stream.namespace_name, stream.pod}];
  }

  // True: there is a connection to this process already, and the client has it now.
  bool join(const PodStream& stream, os::Descriptor& channel) {
    if (!stream.is_attach()) return false;
    std::erase_if(attached_, [](const auto& each) { return each.second.expired(); });
    const auto there = place_of(stream).lock();
    if (there == nullptr || !there->can_take_over()) return false;
    there->take_over(stream, std::move(channel));
    return true;
  }

  void begin(PodStream stream, Credential credential, os::Descriptor channel,
             PodStreamHooks hooks) {
    std::weak_ptr<PodChannel>* place = stream.is_attach() ? &place_of(stream) : nullptr;
    const auto made = std::make_shared<PodChannel>(io_, std::move(stream), limits_,
                                                   std::move(hooks), std::move(channel));
    if (place != nullptr) *place = made;
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
  std::map<Key, std::weak_ptr<PodChannel>> attached_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;  // last: it uses all others
};

PodStreams::PodStreams(Endpoint endpoint, PodStreamLimits limits)
    : impl_(std::make_unique<Impl>(std::move(endpoint), limits)) {}
PodStreams::~PodStreams() = default;

void PodStreams::run(PodStream stream, Credential credential, os::Descriptor channel,
                     PodStreamHooks hooks) {
  impl_->run(std::move(stream), std::move(credential), std::move(channel), std::move(hooks));
}

void PodStreams::process_ended(std::string namespace_name, std::string pod) {
  impl_->process_ended(std::move(namespace_name), std::move(pod));
}

}  // namespace gpu_platform::kubernetes
