#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "api/convert/event_stream.h"
#include "listener/client.h"
#include "listener/grpc/daemon_links.h"
#include "listener/grpc/methods.h"
#include "listener/grpc/wire.h"

namespace gpu_platform::listener {

// One call of a client: its stream of HTTP/2 on this side, a request of HTTP/1.1 to the daemon on
// the other. What the daemon sends is read only as the client takes it. The end of this object ends
// the request to the daemon.
//
// Thread: its io context's one thread.
class GrpcCall {
 public:
  struct Environment {
    ClientContext with;
    DaemonLinks& links;
    ConnectionTable::Key key;
    bool has_certificate = false;
    bool is_over_tls = true;
    // Has advance() called soon; may be called when the call is gone.
    std::function<void()> wake;
  };
  explicit GrpcCall(Environment environment);
  ~GrpcCall();
  GrpcCall(const GrpcCall&) = delete;
  GrpcCall& operator=(const GrpcCall&) = delete;

  // One field of the head, as it comes. False: there is too much of it.
  bool add_field(std::string_view name, std::string_view value);
  // The head is whole.
  void begin();
  void take(std::string_view bytes);
  void end_request();
  bool has_whole_request() const { return has_whole_request_; }

  // Makes all progress that is possible now.
  void advance();
  void tick(Client::Clock::time_point now);
  // The server ends: an answer that would go on for ever ends now.
  void begin_stop();

  // Something can be sent.
  bool has_answer() const { return is_ended_ || has_output(); }
  bool has_output() const { return read_ < out_.size(); }
  // Moves a piece of the answer, and returns its size.
  std::size_t read(std::span<char> into);
  // That was the last of it.
  bool is_ended() const { return is_ended_; }
  const GrpcStatus& status() const { return status_; }
  // Other than 200: the client speaks no gRPC.
  int http_status() const { return http_status_; }
  // The client takes nothing of its answer.
  bool is_stuck() const { return is_stuck_; }
  // It tells nothing of who the client is.
  bool is_open_to_all() const { return method_ && method_->is_health(); }

 private:
  using Parser = boost::beast::http::response_parser<boost::beast::http::string_body>;
  struct Head {
    std::string method, path, authority, content_type, authorization, origin, fetch_site, timeout,
        encoding, last_event_id, fields;
  };

  std::string* field_of(std::string_view name);
  bool speaks_grpc();
  std::optional<GrpcStatus> check_head();
  void set_time_limit();
  std::optional<std::string> only_message();
  void take_messages();
  void answer_health();
  void answer_questions();
  void open();
  bool send();
  bool receive();
  void read_answer(std::string_view bytes);
  void take_body(std::string&& body);
  void take_events(std::string_view bytes);
  void end_answer();
  void put_answer(std::string_view json);
  bool hold(std::size_t bytes);
  void end(GrpcStatus status);
  void fail(const base::Error& error) { end(status_of(error)); }
  void wait(bool to_write);

  Environment environment_;
  Head head_;
  std::size_t head_bytes_ = 0;
  std::size_t head_fields_ = 0;
  bool has_twice_ = false;
  bool has_head_ = false;
  std::optional<GrpcMethod> method_;
  std::string bearer_;
  GrpcMessageReader messages_;
  std::optional<std::string> request_;
  bool has_whole_request_ = false;

  std::unique_ptr<DaemonLink> link_;
  std::string to_daemon_;
  std::size_t sent_ = 0;  // of it
  std::string in_;        // of the daemon, not yet parsed
  std::optional<Parser> parser_;
  bool is_stream_ = false;
  std::string body_;
  api::EventReader events_;
  bool waits_to_read_ = false;
  bool waits_to_write_ = false;

  std::string out_;
  std::size_t read_ = 0;  // of it
  bool is_ended_ = false;
  bool is_watch_ = false;  // of health, and counts as a connection of the client's address
  bool is_stuck_ = false;
  GrpcStatus status_;
  int http_status_ = 200;
  std::uint64_t held_bytes_ = 0;  // of the connection table
  boost::asio::steady_timer timer_;
  Client::Clock::time_point moved_at_ = Client::Clock::now();  // the client has sent or taken
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace gpu_platform::listener
