#pragma once

#include <curl/curl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "os/descriptor.h"

// libcurl's transfers, carried on by what happens on their sockets (curl_multi_socket_action). With
// curl_multi_perform libcurl asks the kernel about every transfer's socket each time.
//
// What comes on a connection makes libcurl look at all transfers of that connection. Long streams
// and short requests therefore have connections of their own, or each event of a watch would cost a
// look at each request that is under way. Thread: one owner; wake() on any.

namespace gpu_platform::kubernetes {

class MultiDriver {
 public:
  enum class Lane : std::uint8_t { kRequests, kStreams };

  // Null where there is no memory or no descriptor for it.
  static std::unique_ptr<MultiDriver> make();
  MultiDriver(const MultiDriver&) = delete;
  MultiDriver& operator=(const MultiDriver&) = delete;
  ~MultiDriver() = default;

  void add(Lane lane, CURL* easy) { curl_multi_add_handle(multi(lane), easy); }
  void remove(Lane lane, CURL* easy) { curl_multi_remove_handle(multi(lane), easy); }
  // A transfer that is done and still to be removed; null: there is none.
  const CURLMsg* next_done() const;

  // Carries on all that something came for, or whose time has come.
  void drive();
  // Returns when something has come, when wake() was called, when one of `readable` can be read, or
  // at `until_ns` of the monotonic clock.
  void wait(std::int64_t until_ns, std::span<const int> readable);
  void wake() const;

 private:
  struct Multi {
    std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> handle{nullptr, curl_multi_cleanup};
    std::uint64_t lane = 0;
    int sockets = -1;         // the epoll instance
    std::int64_t due_ns = 0;  // when libcurl wants to go on; 0: it waits for sockets alone
  };

  MultiDriver(os::Descriptor sockets, os::Descriptor bell);

  CURLM* multi(Lane lane) const { return multis_.at(static_cast<std::size_t>(lane)).handle.get(); }
  static int on_socket(CURL* easy, curl_socket_t socket, int wish, void* self, void* data);
  static int on_timer(CURLM* multi, long time_ms, void* self);

  os::Descriptor sockets_;       // an epoll instance
  os::Descriptor bell_;          // an eventfd
  std::array<Multi, 2> multis_;  // by lane; last: their end tells on_socket
};

}  // namespace gpu_platform::kubernetes
