#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "listener/rest/answer_reader.h"
#include "listener/rest/census.h"
#include "listener/rest/policy.h"
#include "listener/rest/request_reader.h"
#include "listener/transport.h"
#include "listener/upstream.h"

namespace gpu_platform::listener {

// The times of a connection.
struct Times {
  std::chrono::milliseconds handshake{10'000};
  std::chrono::milliseconds first_request{15'000};  // from the handshake to its first byte
  std::chrono::milliseconds request{30'000};        // from its first byte to its last
  std::chrono::milliseconds idle{120'000};          // between two requests
  std::chrono::milliseconds write{30'000};          // for the client to take something
  std::chrono::milliseconds drain{2'000};
  std::chrono::milliseconds upstream_idle{5'000};
};

// What the connections of one thread share.
struct Surroundings {
  boost::asio::io_context& io;
  Upstream& upstream;
  Census& census;
  const Policy& policy;
  const RequestLimits& limits;
  const Times& times;
  std::array<char, 64 * 1024>& scratch;
  std::atomic<std::uint64_t>& refusals;  // a number for each answer of the listener's own
};

// One client: reads its requests one after the other, hands each to the daemon, and passes the
// answer on as it comes. At most one piece of an answer waits for a slow client. A client that goes
// takes its connection to the daemon along.
//
// Thread: its io context's one thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;
  using ClientSocket = boost::asio::basic_stream_socket<boost::asio::ip::tcp,
                                                        boost::asio::io_context::executor_type>;

  // `key`: of the census, which the connection has entered. `tls` null: plain. `closed` is called
  // once, by close().
  Connection(Surroundings surroundings, ClientSocket socket, std::string address, Census::Key key,
             const Tls* tls, std::function<void(Connection*)> closed);

  void begin();
  // Closes what has taken too long; called now and then.
  void tick(Clock::time_point now);
  // Ends as soon as nothing is under way.
  void begin_stop();
  void close();

 private:
  enum class State {
    kGreeting,   // the handshake of TLS
    kReading,    // a request, or idle before one
    kAnswering,  // by the daemon, or with an answer of our own
    kSpliced,    // bytes go to and fro
    kDraining,   // answered and closing: reads what the client still sends
    kClosed,
  };
  using DaemonSocket = boost::asio::basic_stream_socket<boost::asio::local::stream_protocol,
                                                        boost::asio::io_context::executor_type>;

  // Makes all progress that is possible now. Each step returns whether there may be more.
  void go();
  bool greet();
  bool read_request();
  bool take(std::string_view bytes);
  bool judge_head();
  bool hold_body();
  bool begin_exchange();
  bool begin_own(OwnAnswer answer, bool is_last);
  bool refuse(const Refusal& refusal);
  bool answer();
  bool receive();
  bool end_exchange();
  bool splice();
  bool drain();

  bool open_daemon(const Request& request);
  bool is_daemon_gone();
  void close_daemon();
  void send_request();
  bool flush();
  bool watch_client();
  bool wait(Transport::Outcome outcome);

  void wait_for_client(bool to_write);
  void wait_for_daemon(bool to_write);
  void set_deadline(std::chrono::milliseconds after) { deadline_ = Clock::now() + after; }
  void clear_deadline() { deadline_ = Clock::time_point::max(); }

  Surroundings with_;
  ClientSocket client_;
  Transport transport_;
  const std::string address_;
  const Census::Key key_;
  std::function<void(Connection*)> closed_;
  State state_ = State::kGreeting;

  std::string in_;  // read and not yet taken
  std::unique_ptr<RequestReader> reader_;
  bool is_head_judged_ = false;
  bool is_known_ = false;  // the daemon has answered a request of the client
  bool is_stopping_ = false;
  std::uint64_t held_bytes_ = 0;  // of the census

  std::optional<DaemonSocket> daemon_;
  std::string bearer_;  // that daemon_ was opened with
  Clock::time_point daemon_idle_since_;
  std::string to_daemon_;
  std::size_t sent_ = 0;  // of it

  std::unique_ptr<AnswerReader> answer_;  // null: the answer is our own
  bool is_last_ = false;
  std::string out_;
  std::size_t written_ = 0;  // of it
  std::size_t drained_ = 0;

  struct Waits {
    bool client_read = false;
    bool client_write = false;
    bool daemon_read = false;
    bool daemon_write = false;
  };
  Waits waits_;
  std::uint64_t daemon_number_ = 0;  // waits for a former one say nothing
  Clock::time_point deadline_ = Clock::time_point::max();
};

}  // namespace gpu_platform::listener
