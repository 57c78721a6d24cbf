#include "kubernetes/pod_channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include "os/clock.h"

namespace gpu_platform::kubernetes {
namespace {

namespace asio = boost::asio;
using asio::generic::seq_packet_protocol;

constexpr std::size_t kMaxKeys = 64;                    // that wait; more are dropped
constexpr std::size_t kPiece = std::size_t{32} * 1024;  // of input, in one message
constexpr int kSilentPings = 3;
constexpr base::Duration kLeaveTime = base::seconds(10);
constexpr std::string_view kEndOfTransmission = "\x04";  // typed: the end of a terminal's input

}  // namespace

PodChannel::PodChannel(asio::io_context& io, PodStream stream, PodStreamLimits limits,
                       os::Descriptor channel)
    : stream_(std::move(stream)),
      limits_(limits),
      channel_(io, seq_packet_protocol(AF_UNIX, 0), channel.release()),
      timer_(io),
      messages_(stream_.is_port()),
      size_(stream_.terminal) {}

void PodChannel::begin(std::unique_ptr<WebSocket> socket) {
  socket_ = std::move(socket);
  wake_after(limits_.open_time);
  read_frames();
  socket_->open(
      path_of(stream_), protocol_of(stream_),
      [self = shared_from_this()](const std::optional<Answer>& refusal) { self->opened(refusal); });
}

void PodChannel::refuse(std::string_view why) {
  end({model::ChannelEnd::kNotOpened, 0, std::string(why)});
}

void PodChannel::opened(const std::optional<Answer>& refusal) {
  if (has_left_ || is_ending_) return;
  if (refusal) {
    return refuse(fmt::format("the cluster's API server {}: {}",
                              refusal->status == 0 ? "cannot be used" : "refuses it",
                              complaint_of(*refusal)));
  }
  is_open_ = true;
  wake_after(limits_.ping_every);
  add_frame(model::OpenedFrame{});
  write_server();
  pump();
}

// ---- time

void PodChannel::wake_after(base::Duration time) {
  timer_.expires_after(std::chrono::nanoseconds(time.value()));
  timer_.async_wait([self = shared_from_this()](const Error& error) {
    if (!error) self->on_timer();
  });
}

void PodChannel::on_timer() {
  if (has_left_) {
    if (socket_) socket_->drop();
    return;
  }
  if (is_ending_) return;
  if (!is_open_) {
    return refuse(fmt::format("the cluster's API server did not answer within {} s",
                              base::whole_milliseconds(limits_.open_time) / 1000));
  }
  if (told_end_) return end(*told_end_);
  keep_alive();
}

// While output waits for the person, nothing is read and nothing can be heard. A server that cannot
// pass input on answers nothing either: what it holds may be what we wrote last.
void PodChannel::keep_alive() {
  const std::int64_t alive_ns = std::max(socket_->heard_ns(), reads_since_ns_);
  const std::int64_t silence_ns = os::monotonic_ns() - alive_ns;
  const bool is_silent = silence_ns > kSilentPings * limits_.ping_every.value();
  if (is_reading_ && is_silent && wrote_input_ns_ <= alive_ns) return cut();
  wake_after(limits_.ping_every);
  if (is_pinging_) return;
  is_pinging_ = true;
  socket_->ping([self = shared_from_this()](const Error&) { self->is_pinging_ = false; });
}

// ---- from the person

void PodChannel::read_frames() {
  channel_.async_receive(asio::buffer(frame_), flags_,
                         [self = shared_from_this()](const Error& error, std::size_t size) {
                           if (self->has_left_) return;
                           // Told once, before the last words, of a side that left something
                           // unread.
                           const bool has_more = error == asio::error::connection_reset &&
                                                 !std::exchange(self->was_reset_, true);
                           if (has_more) return self->read_frames();
                           const auto frame =
                               error ? std::optional<model::Frame>()
                                     : model::decode_frame({self->frame_.data(), size});
                           if (!frame || !self->take_frame(*frame)) return self->leave();
                           self->write_server();
                           self->read_frames();
                         });
}

// False: not a frame that a client may send now.
bool PodChannel::take_frame(const model::Frame& frame) {
  if (const auto* input = std::get_if<model::InputFrame>(&frame)) return take_input(input->bytes);
  if (std::holds_alternative<model::EndOfInputFrame>(frame)) {
    input_has_ended_ = true;
  } else if (const auto* resize = std::get_if<model::ResizeFrame>(&frame)) {
    if (stream_.terminal) size_ = resize->size;
  } else if (const auto* order = std::get_if<model::SignalFrame>(&frame)) {
    take_signal(order->signal);
  } else {
    return false;
  }
  return true;
}

bool PodChannel::take_input(std::string_view bytes) {
  const std::size_t held = waiting_.size() + under_way_;
  if (input_has_ended_ || held + bytes.size() > model::kInputWindow) return false;
  waiting_ += bytes;
  return true;
}

void PodChannel::take_signal(int signal) {
  const auto key = stream_.terminal ? key_of(signal) : std::nullopt;
  if (key && keys_.size() < kMaxKeys) keys_ += *key;
}

// What goes to the pod next. Keys and sizes do not wait for input.
std::optional<PodChannel::ToPod> PodChannel::next_message() {
  if (size_) return ToPod{resize_message(*std::exchange(size_, std::nullopt))};
  if (!keys_.empty()) return ToPod{input_message(std::exchange(keys_, {}))};
  if (!waiting_.empty()) {
    const std::size_t size = std::min(waiting_.size(), kPiece);
    ToPod piece{input_message(std::string_view(waiting_).substr(0, size)), size};
    waiting_.erase(0, size);
    return piece;
  }
  const bool has_end = input_has_ended_ && !stream_.is_port();
  if (!has_end || std::exchange(is_end_of_input_told_, true)) return std::nullopt;
  return ToPod{stream_.terminal ? input_message(kEndOfTransmission) : end_of_input_message()};
}

void PodChannel::write_server() {
  if (!is_open_ || is_writing_ || is_ending_ || has_left_) return;
  auto next = next_message();
  if (!next) return;
  is_writing_ = true;
  under_way_ = next->input_bytes;
  if (under_way_ > 0) wrote_input_ns_ = os::monotonic_ns();
  socket_->write(std::move(next->message), [self = shared_from_this()](const Error& error) {
    self->is_writing_ = false;
    self->taken_ += static_cast<std::uint32_t>(std::exchange(self->under_way_, 0));
    // A server that has gone is seen, after its last words, by the reader.
    if (!error) self->write_server();
    self->pump();
  });
}

// ---- from the pod

void PodChannel::read_server() {
  if (!is_open_ || is_reading_ || is_ending_ || has_left_) return;
  is_reading_ = true;
  reads_since_ns_ = os::monotonic_ns();
  socket_->read([self = shared_from_this()](const Error& error, std::string_view message) {
    self->is_reading_ = false;
    if (self->has_left_ || self->is_ending_) return;
    if (error) return self->server_left();
    self->take_message(message);
    self->pump();
  });
}

void PodChannel::take_message(std::string_view bytes) {
  const PodMessage message = messages_.read(bytes);
  switch (message.kind) {
    case PodMessage::Kind::kNothing:
      return;
    case PodMessage::Kind::kOutput:
    case PodMessage::Kind::kErrorOutput:
      return add_output(message);
    case PodMessage::Kind::kEnd:
      // The connection's end follows, or, from a server that forgets it, the time is over.
      if (!told_end_) wake_after(limits_.end_time);
      told_end_ = stream_.is_port()
                      ? StreamEnd{model::ChannelEnd::kNotOpened, 0,
                                  complaint_of({.failure = std::string(message.bytes)})}
                      : end_of_status(message.bytes);
  }
}

void PodChannel::add_output(const PodMessage& message) {
  const bool is_error = message.kind == PodMessage::Kind::kErrorOutput;
  for (std::string_view rest = message.bytes; !rest.empty();) {
    const std::string_view piece = rest.substr(0, model::kMaxFrameBytes);
    rest.remove_prefix(piece.size());
    add_frame(is_error ? model::Frame(model::ErrorOutputFrame{piece})
                       : model::Frame(model::OutputFrame{piece}));
  }
}

void PodChannel::server_left() {
  if (told_end_) return end(*told_end_);
  if (stream_.is_port()) return end({});
  cut();
}

// ---- to the person

void PodChannel::pump() {
  if (is_sending_ || has_left_) return;
  if (frames_.empty() && taken_ > 0 && !is_ending_) {
    add_frame(model::TakenFrame{std::exchange(taken_, 0)});
  }
  if (frames_.empty()) return is_ending_ ? leave() : read_server();
  is_sending_ = true;
  channel_.async_send(asio::buffer(frames_.front()), MSG_NOSIGNAL,
                      [self = shared_from_this()](const Error& error, std::size_t) {
                        self->is_sending_ = false;
                        self->frames_.pop_front();
                        if (error) return self->leave();
                        self->pump();
                      });
}

// ---- the end

void PodChannel::end(const StreamEnd& how) {
  if (is_ending_ || has_left_) return;
  add_frame(model::EndFrame{how.end, how.value, how.text});
  cut();
}

// What is known is still passed on.
void PodChannel::cut() {
  is_ending_ = true;
  pump();
}

void PodChannel::leave() {
  if (std::exchange(has_left_, true)) return;
  Error ignored;
  channel_.close(ignored);
  timer_.cancel();
  if (!socket_) return;
  if (!is_open_) return socket_->drop();
  // A close waits for what is being written, which a dead server never takes.
  wake_after(kLeaveTime);
  socket_->close([self = shared_from_this()](const Error&) {
    self->timer_.cancel();
    self->socket_->drop();
  });
}

}  // namespace gpu_platform::kubernetes
