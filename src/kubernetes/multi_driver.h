#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "libcurl/library.h"
#include "os/descriptor.h"

// libcurl's transfers, carried on by what happens on their sockets (curl_multi_socket_action). With
// curl_multi_perform libcurl asks the kernel about every transfer's socket each time.
// Thread: one owner; wake() on any.

namespace gpu_platform::kubernetes {

class MultiDriver {
 public:
  // Null where there is no memory or no descriptor for it.
  static std::unique_ptr<MultiDriver> make();
  MultiDriver(const MultiDriver&) = delete;
  MultiDriver& operator=(const MultiDriver&) = delete;
  ~MultiDriver() = default;

  void add(CURL* easy) { libcurl::curl().multi_add_handle(multi_.get(), easy); }
  void remove(CURL* easy) { libcurl::curl().multi_remove_handle(multi_.get(), easy); }
  // A transfer that is done and still to be removed; null: there is none.
  const CURLMsg* next_done() const;

  // Carries on all that wait() has found something for, or whose time has come.
  void drive();
  // Returns when something has come, when wake() was called, when one of `readable` can be read (a
  // negative one never can), or at `until_ns` of the monotonic clock, to the millisecond.
  void wait(std::int64_t until_ns, std::span<const int> readable);
  void wake() const;

 private:
  MultiDriver(os::Descriptor sockets, os::Descriptor bell);

  static int on_socket(CURL* easy, curl_socket_t socket, int wish, void* self, void* data);
  static int on_timer(CURLM* multi, long time_ms, void* self);

  void look(int time_ms);

  os::Descriptor sockets_;              // an epoll instance, of the bell, too
  os::Descriptor bell_;                 // an eventfd
  std::array<epoll_event, 64> events_;  // that came; further ones come with the next look
  std::size_t events_count_ = 0;        // to be carried on
  std::int64_t due_ns_ = 0;  // when libcurl wants to go on; 0: it waits for sockets alone
  std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi_;  // last: its end tells on_socket
};

}  // namespace gpu_platform::kubernetes
