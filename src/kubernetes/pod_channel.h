#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/generic/seq_packet_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "kubernetes/pod_messages.h"
#include "kubernetes/pod_streams.h"
#include "kubernetes/web_socket.h"
#include "model/channel.h"

namespace gpu_platform::kubernetes {

// One channel of PodStreams. Lives as long as something of it is under way. Thread: that of the
// io_context.
class PodChannel : public std::enable_shared_from_this<PodChannel> {
 public:
  PodChannel(boost::asio::io_context& io, PodStream stream, PodStreamLimits limits,
             PodStreamHooks hooks, os::Descriptor channel);

  // Opens the connection to the server.
  void begin(std::unique_ptr<WebSocket> socket);
  // Says that there will be none, and why.
  void refuse(std::string_view why);

  // A connection to a container's own process outlives its client: another one may have it.
  bool can_take_over() const { return stream_.is_attach() && !has_left_ && !is_ending_; }
  // The client of this socket takes the place of the one that is there.
  void take_over(const PodStream& wish, os::Descriptor channel);
  // The server may not tell that the process has ended.
  void process_ended();

 private:
  using Error = boost::system::error_code;

  void opened(const std::optional<Answer>& refusal);
  // ---- time
  void wake_after(base::Duration time);
  void on_timer();
  void keep_alive();
  base::Duration tick() const;
  // ---- the person
  void welcome();
  void part(std::string_view why);
  void drop_person();
  void person_left();
  // ---- from the person
  void read_frames();
  bool take_frame(const model::Frame& frame);
  bool take_input(std::string_view bytes);
  void take_signal(int signal);
  struct ToPod {
    std::string message;
    std::size_t input_bytes = 0;  // of the person's input that are in it
  };
  std::optional<ToPod> next_message();
  void write_server();
  // ---- from the pod
  void read_server();
  void take_message(std::string_view message);
  void expect_end(StreamEnd how);
  void add_output(const PodMessage& message);
  void keep(std::string_view bytes);
  void server_left();
  // ---- to the person
  void add_frame(const model::Frame& frame);
  void pump();
  // ---- the end
  void tell_end();
  void end(const StreamEnd& how);
  void cut();
  void leave();

  const PodStream stream_;
  const PodStreamLimits limits_;
  const PodStreamHooks hooks_;
  boost::asio::generic::seq_packet_protocol::socket channel_;
  std::unique_ptr<WebSocket> socket_;  // null: refused before
  boost::asio::steady_timer timer_;
  PodMessages messages_;
  std::array<char, model::kMaxFrame> frame_;  // that is being received
  boost::asio::socket_base::message_flags flags_ = 0;

  std::string waiting_;                      // input, not sent yet
  std::size_t under_way_ = 0;                // bytes of input that are being sent
  std::string keys_;                         // of signals
  std::optional<model::TerminalSize> size_;  // to be told
  bool redraws_ = false;  // another size is told before: there is a new screen to be filled
  bool input_has_ended_ = false;
  bool is_end_of_input_told_ = false;
  std::uint32_t taken_ = 0;     // bytes of input, to be told
  std::uint64_t received_ = 0;  // input of all persons
  std::string latest_;          // output, of a container's own process
  bool wants_output_ = true;
  std::deque<std::string> frames_;     // to the person
  std::optional<StreamEnd> told_end_;  // by the server, which may have more output

  std::uint64_t person_ = 0;  // counts them: what a former one began does not matter any more
  bool has_person_ = true;
  bool is_open_ = false;
  bool is_reading_ = false;  // the server
  bool is_writing_ = false;  // to the server
  bool is_pinging_ = false;
  bool is_sending_ = false;  // to the person
  bool was_reset_ = false;
  bool is_asking_ = false;  // how the process ended
  bool is_ending_ = false;  // `frames_` are the last ones
  bool has_left_ = false;
  std::int64_t reads_since_ns_ = 0;
  std::int64_t wrote_input_ns_ = 0;
  std::int64_t sends_since_ns_ = 0;
};

}  // namespace gpu_platform::kubernetes
