#include "kubernetes/multi_driver.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "os/clock.h"

namespace gpu_platform::kubernetes {
namespace {

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
  epoll_event rings = {.events = EPOLLIN, .data = {.fd = driver->bell_.get()}};
  const bool hears =
      epoll_ctl(driver->sockets_.get(), EPOLL_CTL_ADD, driver->bell_.get(), &rings) == 0;
  return hears && driver->multi_ != nullptr ? std::move(driver) : nullptr;
}

MultiDriver::MultiDriver(os::Descriptor sockets, os::Descriptor bell)
    : sockets_(std::move(sockets)),
      bell_(std::move(bell)),
      multi_(libcurl::curl().multi_init(), libcurl::curl().multi_cleanup) {
  CURLM* multi = multi_.get();
  if (multi == nullptr) return;
  libcurl::curl().multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, &MultiDriver::on_socket);
  libcurl::curl().multi_setopt(multi, CURLMOPT_SOCKETDATA, this);
  libcurl::curl().multi_setopt(multi, CURLMOPT_TIMERFUNCTION, &MultiDriver::on_timer);
  libcurl::curl().multi_setopt(multi, CURLMOPT_TIMERDATA, this);
}

const CURLMsg* MultiDriver::next_done() const {
  int left = 0;
  while (const CURLMsg* message = libcurl::curl().multi_info_read(multi_.get(), &left)) {
    if (message->msg == CURLMSG_DONE) return message;
  }
  return nullptr;
}

void MultiDriver::drive() {
  int running = 0;
  for (const epoll_event& event : std::span(events_).first(std::exchange(events_count_, 0))) {
    if (event.data.fd == bell_.get()) continue;
    libcurl::curl().multi_socket_action(multi_.get(), event.data.fd, action_of(event.events),
                                        &running);
  }
  if (due_ns_ == 0 || os::monotonic_ns() < due_ns_) return;
  due_ns_ = 0;  // libcurl says what comes next while it goes on
  libcurl::curl().multi_socket_action(multi_.get(), CURL_SOCKET_TIMEOUT, 0, &running);
}

void MultiDriver::wait(std::int64_t until_ns, std::span<const int> readable) {
  if (due_ns_ != 0) until_ns = std::min(until_ns, due_ns_);
  constexpr std::int64_t kMillisecond = 1'000'000;
  const std::int64_t time_ns =
      std::clamp<std::int64_t>(until_ns - os::monotonic_ns(), 0, 60'000 * kMillisecond);
  const int time_ms = static_cast<int>((time_ns + kMillisecond - 1) / kMillisecond);
  if (std::ranges::all_of(readable, [](int fd) { return fd < 0; })) return look(time_ms);
  std::vector<pollfd> awaited = {{sockets_.get(), POLLIN, 0}};
  for (const int fd : readable) awaited.push_back({fd, POLLIN, 0});
  ::poll(awaited.data(), awaited.size(), time_ms);
  look(0);
}

void MultiDriver::look(int time_ms) {
  const int count =
      epoll_wait(sockets_.get(), events_.data(), static_cast<int>(events_.size()), time_ms);
  events_count_ = static_cast<std::size_t>(std::max(count, 0));
  eventfd_t rings = 0;
  for (const epoll_event& event : std::span(events_).first(events_count_)) {
    if (event.data.fd == bell_.get()) eventfd_read(bell_.get(), &rings);
  }
}

void MultiDriver::wake() const {
  eventfd_write(bell_.get(), 1);
}

int MultiDriver::on_socket(CURL* /*easy*/, curl_socket_t socket, int wish, void* self, void* data) {
  const MultiDriver& driver = *static_cast<MultiDriver*>(self);
  const int sockets = driver.sockets_.get();
  if (wish == CURL_POLL_REMOVE) {
    epoll_ctl(sockets, EPOLL_CTL_DEL, socket, nullptr);  // it may be closed already
    return 0;
  }
  epoll_event event = {.events = events_of(wish), .data = {.fd = socket}};
  if (data != nullptr) return epoll_ctl(sockets, EPOLL_CTL_MOD, socket, &event);
  libcurl::curl().multi_assign(driver.multi_.get(), socket,
                               self);  // `data` from now on: it is known
  return epoll_ctl(sockets, EPOLL_CTL_ADD, socket, &event);
}

int MultiDriver::on_timer(CURLM* /*multi*/, long time_ms, void* self) {
  static_cast<MultiDriver*>(self)->due_ns_ =
      time_ms < 0 ? 0 : os::monotonic_ns() + std::int64_t{time_ms} * 1'000'000;
  return 0;
}

}  // namespace gpu_platform::kubernetes
