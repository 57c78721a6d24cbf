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
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include "api/call_meter.h"
#include "api/rest/budget.h"
#include "api/rest/dispatcher.h"
#include "api/rest/exchange.h"
#include "api/rest/gate.h"
#include "api/rest/notable_call.h"
#include "api/rest/request_parser.h"
#include "api/rest/session_limits.h"

namespace gpu_platform::api {

class ChannelBridge;

using LocalSocket = boost::asio::basic_stream_socket<boost::asio::local::stream_protocol,
                                                     boost::asio::io_context::executor_type>;

// One connection: reads requests one after the other, has each answered, and gives the answers in
// the order of the requests. What comes while a request is being answered waits in the buffer
// (bounded).
//
// Thread: its io context's one thread. Owned by the server's table until it is closed.
class Session final : public Exchange {
 public:
  struct Environment {
    const Dispatcher& dispatcher;
    CallMeter& meter;
    FileWatcher& watcher;
    boost::asio::io_context& io;
    std::shared_ptr<Gate> gate;
    const SessionLimits& limits;
    Budgets& budgets;
    Holder holder;
    std::function<std::string()> next_request_id;
    // Looks up the name of a peer again if it was not known.
    std::function<void(Peer&)> name_again;
    std::function<void(Session*)> closed;  // once, by close()
    // Asked before each request. An error is the answer, and the connection's last. Null: all are
    // admitted.
    std::function<base::Status(const Peer&)> admit = {};
    // Told of each answer that refuses a call or took long. Null: none is told of.
    std::function<void(const Peer&, const NotableCall&)> notable = {};
  };
  Session(LocalSocket socket, Peer peer, Environment environment);

  void start();
  // Ends as soon as the request under way is answered; streams and waits end now.
  void begin_stop();
  // Ends at once.
  void close();

  Peer& peer() override { return peer_; }
  boost::asio::io_context& context() override { return environment_.io; }
  void is_call(std::string_view name) override { call_ = name; }
  void reply(Reply reply) override;
  Resume resume() override;
  std::function<void()> waker() override;
  void keep(std::shared_ptr<void> waiter) override;
  base::Status begin_stream() override;
  base::Status begin_channel() override;
  bool wants_websocket() const override;
  void bridge(ChannelSocket channel) override;

 private:
  enum class State {
    kReading,    // a request, or idle before one
    kAnswering,  // handed to the dispatcher
    kWriting,    // of the answer
    kWaiting,    // the answer's source has nothing now
    kDraining,   // answered and closing: reads what the client still sends, so that it sees the
                 // answer
    kBridged,    // the connection is a WebSocket now
    kClosed,
  };

  std::shared_ptr<Session> self() { return std::static_pointer_cast<Session>(shared_from_this()); }
  void begin_request();
  void read();
  void on_read(const boost::system::error_code& error, std::size_t bytes);
  void on_client_finished();
  void parse();
  void continue_if_expected();
  void refuse(int status, base::Error error);
  void begin_answer();
  void dispatch();
  void count_answer(int status);
  void write_head(const Reply& reply);
  void write();
  void on_written(const boost::system::error_code& error);
  void pump();
  bool may_go_on();
  std::uint64_t bytes_under_way() const;
  void drop_buffer();
  void end_of_answer();
  void drain();
  void set_deadline(std::chrono::milliseconds after);
  void clear_deadline();
  void arm_timer();
  void on_deadline();
  void withhold_if_ended(Reply& reply);
  void end_unadmitted(base::Error why);
  void admit_again();

  LocalSocket socket_;
  Peer peer_;
  Environment environment_;
  State state_ = State::kReading;

  bool is_reading_ = false;
  std::array<char, 8192> chunk_;
  RequestParser parser_;
  std::uint64_t drained_ = 0;
  Lease request_bytes_;  // of a large one, until it is answered

  std::optional<std::string> known_tags_;  // of a GET: its If-None-Match
  std::string_view call_;                  // that is being answered; empty: none
  std::string request_id_;                 // of the call
  std::int64_t answer_began_ns_ = 0;
  bool keeps_alive_ = true;
  bool is_head_ = false;  // asks for the head of an answer alone
  bool is_http_1_0_ = false;
  bool is_stopping_ = false;
  std::string out_;
  std::string body_;  // behind out_, of an answer that is there as a whole
  Lease answer_bytes_;
  std::unique_ptr<BodySource> source_;
  bool is_source_at_end_ = false;
  bool is_source_resting_ = false;
  bool is_in_line_ = false;  // for room to go on
  Lease stream_;
  Lease channel_;
  std::shared_ptr<void> waiter_;
  std::shared_ptr<std::atomic<bool>> is_woken_;  // a wake-up is on its way

  std::shared_ptr<ChannelBridge> bridge_;

  boost::asio::steady_timer timer_;
  bool is_timer_armed_ = false;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace gpu_platform::api
