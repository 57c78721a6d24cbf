#include "kubernetes/multi_driver.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>
#include <vector>

#include "os/clock.h"

namespace gpu_platform::kubernetes {
namespace {

constexpr std::size_t kMaxEvents = 64;  // of one look; the others come with the next
// What epoll tells of a socket: its lane, and the socket.
constexpr unsigned kLaneShift = 32;
constexpr std::uint64_t kSocketMask = 0xffff'ffff;

std::uint32_t events_of(int wish) {
  std::uint32_t events = 0;
  if ((wish & CURL_POLL_IN) != 0) events |= EPOLLIN;
  if ((wish & CURL_POLL_OUT) != 0) events |= EPOLLOUT;
  return events;
}

int action_of(std::uint32_t events) {
  int action = 0;
  if ((events & (EPOLLIN | EPOLLHUP)) != 0) action |= CURL_CSELECT_IN;
  if ((events & EPOLLOUT) != 0) action |= CURL_CSELECT_OUT;
  if ((events & EPOLLERR) != 0) action |= CURL_CSELECT_ERR;
  return action;
}

}  // namespace

std::unique_ptr<MultiDriver> MultiDriver::make() {
  os::Descriptor sockets(epoll_create1(EPOLL_CLOEXEC));
  os::Descriptor bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!sockets.is_open() || !bell.is_open()) return nullptr;
  std::unique_ptr<MultiDriver> driver(new MultiDriver(std::move(sockets), std::move(bell)));
  const bool has_all =
      std::ranges::all_of(driver->multis_, [](const Multi& one) { return one.handle != nullptr; });
  return has_all ? std::move(driver) : nullptr;
}

MultiDriver::MultiDriver(os::Descriptor sockets, os::Descriptor bell)
    : sockets_(std::move(sockets)), bell_(std::move(bell)) {
  std::uint64_t lane = 0;
  for (Multi& multi : multis_) {
    multi.lane = lane++;
    multi.sockets = sockets_.get();
    multi.handle.reset(curl_multi_init());
    CURLM* handle = multi.handle.get();
    if (handle == nullptr) return;
    curl_multi_setopt(handle, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
    curl_multi_setopt(handle, CURLMOPT_SOCKETFUNCTION, &MultiDriver::on_socket);
    curl_multi_setopt(handle, CURLMOPT_SOCKETDATA, &multi);
    curl_multi_setopt(handle, CURLMOPT_TIMERFUNCTION, &MultiDriver::on_timer);
    curl_multi_setopt(handle, CURLMOPT_TIMERDATA, &multi);
  }
}

const CURLMsg* MultiDriver::next_done() const {
  for (const Multi& multi : multis_) {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi.handle.get(), &left)) {
      if (message->msg == CURLMSG_DONE) return message;
    }
  }
  return nullptr;
}

void MultiDriver::drive() {
  int running = 0;
  std::array<epoll_event, kMaxEvents> events;
  const int count = epoll_wait(sockets_.get(), events.data(), static_cast<int>(kMaxEvents), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events.at(static_cast<std::size_t>(i));
    CURLM* multi = multis_.at(event.data.u64 >> kLaneShift).handle.get();
    const auto socket = static_cast<curl_socket_t>(event.data.u64 & kSocketMask);
    curl_multi_socket_action(multi, socket, action_of(event.events), &running);
  }
  for (Multi& multi : multis_) {
    if (multi.due_ns == 0 || os::monotonic_ns() < multi.due_ns) continue;
    multi.due_ns = 0;  // libcurl says what comes next while it goes on
    curl_multi_socket_action(multi.handle.get(), CURL_SOCKET_TIMEOUT, 0, &running);
  }
}

void MultiDriver::wait(std::int64_t until_ns, std::span<const int> readable) {
  std::vector<pollfd> awaited = {{bell_.get(), POLLIN, 0}, {sockets_.get(), POLLIN, 0}};
  for (const int fd : readable) awaited.push_back({fd, POLLIN, 0});
  for (const Multi& multi : multis_) {
    if (multi.due_ns != 0) until_ns = std::min(until_ns, multi.due_ns);
  }
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t time =
      std::clamp<std::int64_t>(until_ns - os::monotonic_ns(), 0, 60 * kSecond);
  const timespec limit = {time / kSecond, time % kSecond};
  ppoll(awaited.data(), awaited.size(), &limit, nullptr);
  eventfd_t rings = 0;
  if (awaited.front().revents != 0) eventfd_read(bell_.get(), &rings);
}

void MultiDriver::wake() const {
  eventfd_write(bell_.get(), 1);
}

int MultiDriver::on_socket(CURL* /*easy*/, curl_socket_t socket, int wish, void* self,
                           void* /*data*/) {
  const Multi& multi = *static_cast<Multi*>(self);
  if (wish == CURL_POLL_REMOVE) {
    epoll_ctl(multi.sockets, EPOLL_CTL_DEL, socket, nullptr);  // it may be closed already
    return 0;
  }
  const std::uint64_t place = multi.lane << kLaneShift | static_cast<std::uint64_t>(socket);
  epoll_event event = {.events = events_of(wish), .data = {.u64 = place}};
  if (epoll_ctl(multi.sockets, EPOLL_CTL_MOD, socket, &event) == 0) return 0;
  return epoll_ctl(multi.sockets, EPOLL_CTL_ADD, socket, &event) == 0 ? 0 : -1;
}

int MultiDriver::on_timer(CURLM* /*multi*/, long time_ms, void* self) {
  static_cast<Multi*>(self)->due_ns =
      time_ms < 0 ? 0 : os::monotonic_ns() + std::int64_t{time_ms} * 1'000'000;
  return 0;
}

}  // namespace gpu_platform::kubernetes
