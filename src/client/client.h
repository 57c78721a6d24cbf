#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/convert/event_stream.h"
#include "base/result.h"
#include "base/units.h"
#include "client/answer.h"
#include "client/session.h"
#include "http/http.h"

// Calls of the daemon's REST interface, with its errors made into exit codes and sentences.

namespace gpu_platform::client {

// Why a call has no result.
struct Failure {
  enum class Kind {
    kNoDaemon,     // nothing listens at any of the places
    kBroken,       // the connection ended before the answer: it is not known what was carried out
    kInterrupted,  // Ctrl-C, where the caller asked to be told
    kProblem,      // the daemon's own answer; `document` has it
    kBadAnswer,    // what answers does not speak our language
  };
  Kind kind = Kind::kNoDaemon;
  std::string message;
  std::string field;     // of the request, where one is at fault
  std::string document;  // the problem document, the daemon's own or one of our making
  base::ErrorCode code = base::ErrorCode::kInternal;  // of kProblem
  // Set with kNoDaemon alone: the place is there and nothing accepts at it, as while a daemon
  // restarts.
  bool is_refused = false;

  // Trying again later may help: the daemon is away, restarting or busy.
  bool is_passing() const;
};

// What went wrong on our side of a call: the person ended it, or the answer is not what it should
// be.
Failure interrupted();
Failure bad_answer(std::string_view what);

int exit_code_of(const Failure& failure);

// The refusal in an answer of this server.
Failure failure_of_answer(const http::Server& server, const http::HttpHead& head,
                          const std::string& body);

// The failure of a connection that began with exchange().
Failure failure_of(const http::TransportError& error);

// The daemon's sentence about a field of a request, without the field's name.
struct AboutField {
  std::string value;     // "9" of "gpus 9: the largest node has 8 GPUs"; empty if it names none
  std::string sentence;  // "the largest node has 8 GPUs"
};

// Splits "gpus 9: why" and "gpus: why" behind the field; nothing for a sentence of another form.
std::optional<AboutField> about_field(std::string_view message, std::string_view field);

// "--gpus 9: the largest node has 8 GPUs", for an option and the value as it was typed.
std::string told_of_option(std::string_view option, const AboutField& about);

// Tells the person (with `json`: the problem document) and returns the exit code.
int report(Console& console, const Failure& failure, bool json);

template <class T>
using Called = std::expected<T, Failure>;

// The message in an answer; `what` names it in the failure: "a job".
template <class Message>
Called<Message> read_answer(std::string_view text, std::string_view what) {
  std::optional<Message> message = message_of<Message>(text);
  if (message) return *std::move(message);
  return std::unexpected(bad_answer(std::string(what) + " is not a JSON object"));
}

// An open event stream.
class EventStream {
 public:
  explicit EventStream(http::Exchange exchange) : exchange_(std::move(exchange)) {}
  // The next event; nothing at the stream's regular end. kInterrupted leaves the stream usable.
  Called<std::optional<api::ServerEvent>> next(int interrupt_fd);
  // The next events that have come by now, without waiting; empty: there is none. The stream's end
  // is a failure.
  Called<std::vector<api::ServerEvent>> ready();

 private:
  http::Exchange exchange_;
  api::EventReader reader_;
};

class Client {
 public:
  // The first of the servers that answers is the one.
  explicit Client(std::vector<http::Server> servers) : servers_(std::move(servers)) {}

  Called<std::string> get(const std::string& target) { return call("GET", target, {}); }
  // Waits `longer` than usual for the answer: the daemon holds it back on purpose.
  Called<std::string> get_slow(const std::string& target, base::Duration longer, int interrupt_fd);
  Called<std::string> post(const std::string& target, const std::string& body = {}) {
    return call("POST", target, body);
  }
  Called<std::string> remove(const std::string& target) { return call("DELETE", target, {}); }
  Called<std::string> post_slow(const std::string& target, const std::string& body,
                                base::Duration longer, int interrupt_fd);
  // The same, read as a message.
  template <class Message>
  Called<Message> ask(const std::string& target, std::string_view what) {
    const auto body = get(target);
    if (!body) return std::unexpected(body.error());
    return read_answer<Message>(*body, what);
  }
  Called<EventStream> stream(const std::string& target);
  // Any request; its answer as it comes.
  Called<http::Exchange> exchange(const http::HttpRequest& request);
  // A connection to the daemon, for a protocol that begins with a request.
  Called<http::Connection> connect();

  const std::vector<http::Server>& servers() const { return servers_; }
  // The address of the server that answered the last call; empty before the first answer.
  const std::string& answered() const { return answered_; }

 private:
  Called<std::string> call(std::string_view method, const std::string& target,
                           const std::string& body);
  Called<std::string> call_slow(const http::HttpRequest& request, base::Duration longer,
                                int interrupt_fd);
  Called<http::Exchange> begin(const http::HttpRequest& request, const http::Waiting& waiting);
  template <class Result, class Attempt>
  Called<Result> at_first_place(Attempt&& attempt);

  std::vector<http::Server> servers_;
  std::string answered_;
};

// A restart of the daemon takes seconds; after this it is taken for gone.
inline constexpr base::Duration kRetryTimeout = base::minutes(2);
// One held-back answer of the daemon; the waiting itself may go on as long as it likes.
inline constexpr base::Duration kOneWait = base::seconds(60);
// The same where a person is told meanwhile.
inline constexpr base::Duration kOneTold = base::seconds(1);

// Waits while the daemon is away: longer and longer between attempts, up to a limit in all. Says
// once that it does.
class BackOff {
 public:
  BackOff(Console& console, base::Duration timeout) : console_(console), timeout_(timeout) {}
  // Waits before the next attempt; false when it is time to give up (told by the failure then).
  bool wait(const Failure& failure, int interrupt_fd);
  // The daemon answered.
  void reset();

 private:
  Console& console_;
  base::Duration timeout_;
  base::Duration waited_;
  base::Duration next_ = base::milliseconds(100);
  bool told_ = false;
};

}  // namespace gpu_platform::client
