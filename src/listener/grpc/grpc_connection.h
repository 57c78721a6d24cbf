#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <nghttp2/nghttp2.h>

#include "listener/client_stream.h"
#include "listener/grpc/daemon_links.h"
#include "listener/grpc/flood_meter.h"
#include "listener/grpc/grpc_call.h"

namespace gpu_platform::listener {

// One client that speaks gRPC: HTTP/2 with up to kMaxCalls calls at a time. Of each answer some
// 64 KiB wait for a slow client, or one message if that alone is more. A client that keeps the
// server busy without calls is closed with ENHANCE_YOUR_CALM.
//
// Thread: its io context's one thread.
class GrpcConnection final : public Client {
 public:
  static constexpr std::uint32_t kMaxCalls = 100;

  GrpcConnection(ClientContext context, AcceptedClient accepted);

  void begin() override;
  void go() override;
  void tick(Clock::time_point now) override;
  void begin_stop() override;
  void close() override;

 private:
  enum class State {
    kGreeting,  // the handshake of TLS
    kTalking,
    kDraining,  // the last frame is sent: reads what the client still sends
    kClosed,
  };
  struct FreeSession {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };
  struct Stream {
    std::unique_ptr<GrpcCall> call;
    bool has_head = false;    // of the answer, sent
    bool is_waiting = false;  // for output
  };
  // What the library calls, with this as its last argument.
  struct Callbacks;
  friend struct Callbacks;

  std::shared_ptr<GrpcConnection> self() {
    return std::static_pointer_cast<GrpcConnection>(shared_from_this());
  }
  void go_soon();
  bool greet();
  bool begin_session();
  bool read();
  bool write();
  bool gather();
  void advance_calls();
  void serve(std::int32_t id, Stream& stream);
  bool is_over() const;
  void finish();
  void pay(double points);
  void end_soon();

  void begin_call(std::int32_t id);
  void end_call(std::int32_t id);
  GrpcCall* call_of(std::int32_t id);
  void note_frame(const nghttp2_frame& frame);
  void submit_head(std::int32_t id, Stream& stream);
  void submit_end(std::int32_t id, const GrpcStatus& status);
  ssize_t read_answer(std::int32_t id, std::span<char> into, std::uint32_t& flags);

  ClientContext with_;
  ClientStream stream_;
  State state_ = State::kGreeting;

  std::unique_ptr<nghttp2_session, FreeSession> session_;
  DaemonLinks links_;
  std::map<std::int32_t, Stream> streams_;
  std::set<std::int32_t> ready_;  // of them, with something to do
  FloodMeter meter_;
  bool is_known_ = false;   // a call of the client was answered
  bool is_ending_ = false;  // nothing more is read
  bool is_posted_ = false;
  Clock::time_point quiet_since_;  // without a call
};

}  // namespace gpu_platform::listener
