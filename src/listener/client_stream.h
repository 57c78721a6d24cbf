#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "listener/client.h"
#include "listener/transport.h"

namespace gpu_platform::listener {

// A client that was taken in. `key`: of the connection table, which it has entered. `tls` null:
// plain. `closed` is called once, when it is closed.
struct AcceptedClient {
  ClientSocket socket;
  std::string address;
  ConnectionTable::Key key;
  const Tls* tls = nullptr;
  std::function<void(Client*)> closed;
};

// The bytes of one client, to it and from it, with the time that it has for what it does next. An
// operation that cannot be done now waits, and has the client go on (Client::go) when it can; one
// that can never be done closes the client (Client::close).
//
// Thread: the client's.
class ClientStream {
 public:
  // `owner` owns the stream.
  ClientStream(Client& owner, ClientContext context, AcceptedClient accepted);

  // Prepares the socket and gives the client its time for the handshake.
  void begin();
  bool handshake();
  bool is_over_tls() const { return transport_.is_over_tls(); }
  // After the handshake (Transport::proof).
  const std::string& proof() const { return transport_.proof(); }

  // The next bytes, in the scratch space of the context.
  std::optional<std::string_view> read();
  // What flush() writes.
  std::string& output() { return out_; }
  bool has_output() const { return !out_.empty(); }
  // Returns whether all output is written; then the client is in time, unless `keeps_deadline`.
  // One that takes nothing has the time for writing.
  bool flush(bool keeps_deadline = false);
  // Writes a few bytes that may get lost, before any output.
  void write_if_possible(std::string_view bytes) { (void)transport_.write(bytes); }
  // Tells the client that nothing more comes, and gives it the time for draining. Closing with
  // unread bytes would take the last ones away from it.
  void finish();
  // Reads what the client still sends.
  void drain();

  void set_deadline(std::chrono::milliseconds after) { deadline_ = Client::Clock::now() + after; }
  // Brings it forward if that is sooner.
  void shorten_deadline(std::chrono::milliseconds after);
  void clear_deadline() { deadline_ = Client::Clock::time_point::max(); }
  bool is_overdue(Client::Clock::time_point now) const { return now >= deadline_; }

  // Closes the socket, leaves the connection table and tells that the client is closed.
  void close();

  const std::string& address() const { return accepted_.address; }
  const ConnectionTable::Key& key() const { return accepted_.key; }

 private:
  void wait(Transport::Outcome outcome);

  Client& owner_;
  ClientContext with_;
  AcceptedClient accepted_;
  Transport transport_;
  std::string out_;
  std::size_t written_ = 0;  // of it
  std::size_t drained_ = 0;
  bool waits_to_read_ = false;
  bool waits_to_write_ = false;
  Client::Clock::time_point deadline_ = Client::Clock::time_point::max();
};

}  // namespace gpu_platform::listener
