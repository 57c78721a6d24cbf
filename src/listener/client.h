#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "listener/connection_table.h"
#include "listener/rest/policy.h"
#include "listener/rest/request_reader.h"
#include "listener/upstream.h"

namespace gpu_platform::listener {

// The times of a client.
struct Times {
  std::chrono::milliseconds handshake{10'000};
  std::chrono::milliseconds first_request{15'000};  // from the handshake to its first byte
  std::chrono::milliseconds request{30'000};        // from its first byte to its last
  std::chrono::milliseconds idle{120'000};          // between two requests
  std::chrono::milliseconds write{30'000};          // for the client to take something
  std::chrono::milliseconds drain{2'000};
  std::chrono::milliseconds upstream_idle{5'000};
};

// What the clients of one thread share.
struct ClientContext {
  boost::asio::io_context& io;
  Upstream& upstream;
  ConnectionTable& connection_table;
  const Policy& policy;
  const RequestLimits& limits;
  const Times& times;
  std::array<char, 64 * 1024>& scratch;
  std::atomic<std::uint64_t>& refusals;  // a number for each answer of the listener's own
};

using ClientSocket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;
using DaemonSocket = boost::asio::basic_stream_socket<boost::asio::local::stream_protocol,
                                                      boost::asio::io_context::executor_type>;

// One client of any protocol: takes its requests to the daemon and the answers back.
//
// Thread: its io context's one thread.
class Client : public std::enable_shared_from_this<Client> {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Client() = default;
  virtual void begin() = 0;
  // Makes all progress that is possible now.
  virtual void go() = 0;
  // Closes what has taken too long; called now and then.
  virtual void tick(Clock::time_point now) = 0;
  // Ends as soon as nothing is under way.
  virtual void begin_stop() = 0;
  virtual void close() = 0;
};

}  // namespace gpu_platform::listener
