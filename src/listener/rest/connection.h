#pragma once

#include <memory>
#include <optional>
#include <string>

#include "listener/client_stream.h"
#include "listener/rest/answer_reader.h"

namespace gpu_platform::listener {

// One client: reads its requests one after the other, hands each to the daemon, and passes the
// answer on as it comes. At most one piece of an answer waits for a slow client. A client that goes
// takes its connection to the daemon along.
//
// Thread: its io context's one thread.
class Connection final : public Client {
 public:
  Connection(ClientContext context, AcceptedClient accepted);

  void begin() override;
  void go() override;
  void tick(Clock::time_point now) override;
  void begin_stop() override;
  void close() override;

 private:
  enum class State {
    kGreeting,   // the handshake of TLS
    kReading,    // a request, or idle before one
    kAnswering,  // by the daemon, or with an answer of our own
    kSpliced,    // bytes go to and fro
    kDraining,   // answered and closing: reads what the client still sends
    kClosed,
  };

  std::shared_ptr<Connection> self() {
    return std::static_pointer_cast<Connection>(shared_from_this());
  }
  // Steps of go(). Each returns whether there may be more to do.
  bool greet();
  bool read_request();
  bool take(std::string_view bytes);
  bool judge_head();
  bool hold_body();
  bool begin_exchange();
  bool wants_head_alone() const;
  bool begin_own(OwnAnswer answer, bool is_last);
  bool refuse(const Refusal& refusal);
  bool answer();
  bool receive();
  bool end_exchange();
  bool splice();

  bool open_daemon(const Request& request);
  bool is_daemon_gone();
  void close_daemon();
  void send_request();
  bool watch_client();
  void wait_for_daemon(bool to_write);

  ClientContext with_;
  ClientStream stream_;
  State state_ = State::kGreeting;

  std::string in_;  // read and not yet taken
  std::unique_ptr<RequestReader> reader_;
  bool is_head_judged_ = false;
  bool is_known_ = false;  // the daemon has answered a request of the client
  bool is_stopping_ = false;
  std::uint64_t held_bytes_ = 0;  // of the connection table

  std::optional<DaemonSocket> daemon_;
  std::string bearer_;  // that daemon_ was opened with
  Clock::time_point daemon_idle_since_;
  std::string to_daemon_;
  std::size_t sent_ = 0;  // of it

  std::unique_ptr<AnswerReader> answer_;  // null: the answer is our own
  bool is_last_ = false;

  bool waits_to_read_ = false;  // from the daemon
  bool waits_to_write_ = false;
  std::uint64_t daemon_number_ = 0;  // waits for a former one say nothing
};

}  // namespace gpu_platform::listener
