#include "kubernetes/pod_channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include "os/clock.h"

namespace gpu_platform::kubernetes {
namespace {

namespace asio = boost::asio;
using asio::generic::seq_packet_protocol;

constexpr std::size_t kMaxKeys = 64;                    // that wait; more are dropped
constexpr std::size_t kPiece = std::size_t{32} * 1024;  // of input, in one message
constexpr int kSilentPings = 3;
constexpr base::Duration kLeaveTime = base::seconds(10);
constexpr std::size_t kLatest = std::size_t{64} * 1024;  // of output, for the next client
constexpr std::string_view kEndOfTransmission = "\x04";  // typed: the end of a terminal's input

}  // namespace

PodChannel::PodChannel(asio::io_context& io, PodStream stream, PodStreamLimits limits,
                       PodStreamHooks hooks, os::Descriptor channel)
    : stream_(std::move(stream)),
      limits_(limits),
      hooks_(std::move(hooks)),
      channel_(io, seq_packet_protocol(AF_UNIX, 0), channel.release()),
      timer_(io),
      messages_(stream_.is_port()),
      size_(stream_.terminal),
      wants_output_(!stream_.without_output) {
  keep(stream_.printed);
}

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
                              error_message_of(*refusal)));
  }
  is_open_ = true;
  wake_after(tick());
  welcome();
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
  if (told_end_) return tell_end();
  keep_alive();
}

// A client is detached in time, too.
base::Duration PodChannel::tick() const {
  return stream_.is_attach() ? std::min(limits_.ping_every, limits_.client_timeout)
                             : limits_.ping_every;
}

// While output waits for the person, nothing is read and nothing can be heard. A server that cannot
// pass input on answers nothing either: what it holds may be what we wrote last.
void PodChannel::keep_alive() {
  const bool is_late =
      is_sending_ && os::monotonic_ns() - sends_since_ns_ > limits_.client_timeout.value();
  if (stream_.is_attach() && is_late) {
    part("the job's output was not read for too long");
    pump();
  }
  const std::int64_t alive_ns = std::max(socket_->heard_ns(), reads_since_ns_);
  const std::int64_t silence_ns = os::monotonic_ns() - alive_ns;
  const bool is_silent = silence_ns > kSilentPings * limits_.ping_every.value();
  if (is_reading_ && is_silent && wrote_input_ns_ <= alive_ns) return cut();
  wake_after(tick());
  if (is_pinging_) return;
  is_pinging_ = true;
  socket_->ping([self = shared_from_this()](const Error&) { self->is_pinging_ = false; });
}

// ---- the person

void PodChannel::take_over(const PodStream& wish, os::Descriptor channel) {
  if (has_person_) part("another client has attached to the job");
  channel_.assign(seq_packet_protocol(AF_UNIX, 0), channel.release());
  has_person_ = true;
  wants_output_ = !wish.without_output;
  // The sender of what waits has gone, or sends it again.
  waiting_.clear();
  keys_.clear();
  input_has_ended_ = is_end_of_input_told_;
  taken_ = 0;
  if (stream_.terminal && !wish.is_usual_size) {
    size_ = wish.terminal;
    redraws_ = true;
  }
  if (is_open_) welcome();
  read_frames();
  write_server();
  pump();
}

// What is under way reaches the job.
void PodChannel::welcome() {
  add_frame(model::OpenedFrame{received_ + under_way_});
  if (!wants_output_) return;
  std::string_view rest = latest_;
  rest.remove_prefix(rest.size() - std::min(rest.size(), kLatest));
  for (; !rest.empty(); rest.remove_prefix(std::min(rest.size(), model::kMaxFrameBytes))) {
    add_frame(model::OutputFrame{rest.substr(0, model::kMaxFrameBytes)});
  }
}

// Has the person leave a job that goes on. One that takes nothing does not hear why.
void PodChannel::part(std::string_view why) {
  const std::string bytes =
      model::encode_frame(model::EndFrame{model::ChannelEnd::kDetached, 0, why});
  (void)::send(channel_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  drop_person();
}

void PodChannel::drop_person() {
  ++person_;
  has_person_ = false;
  Error ignored;
  channel_.close(ignored);
  frames_.clear();
  is_sending_ = false;
  was_reset_ = false;
}

// The connection to a job stays: its end could be the end of the job's input.
void PodChannel::person_left() {
  if (!can_take_over() || told_end_) return leave();
  drop_person();
  pump();
}

// ---- from the person

void PodChannel::read_frames() {
  channel_.async_receive(
      asio::buffer(frame_), flags_,
      [self = shared_from_this(), person = person_](const Error& error, std::size_t size) {
        if (self->has_left_ || self->person_ != person) return;
        // Told once, before the last words, of a side that left something unread.
        const bool has_more =
            error == asio::error::connection_reset && !std::exchange(self->was_reset_, true);
        if (has_more) return self->read_frames();
        const auto frame = error ? std::optional<model::Frame>()
                                 : model::decode_frame({self->frame_.data(), size});
        if (!frame || !self->take_frame(*frame)) return self->person_left();
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
  if (hooks_.on_input) hooks_.on_input();
  // No process reads it any more: dropped, so that the person need not wait.
  if (stream_.is_attach() && (is_end_of_input_told_ || told_end_)) {
    taken_ += static_cast<std::uint32_t>(bytes.size());
    received_ += bytes.size();
    pump();
    return true;
  }
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
  if (size_ && std::exchange(redraws_, false)) {
    const std::uint16_t rows = size_->rows;
    const auto other = static_cast<std::uint16_t>(rows > 1 ? rows - 1 : rows + 1);
    return ToPod{resize_message({size_->columns, other})};
  }
  if (size_) return ToPod{resize_message(*std::exchange(size_, std::nullopt))};
  if (!keys_.empty()) return ToPod{input_message(std::exchange(keys_, {}))};
  if (!waiting_.empty()) {
    const std::size_t size = std::min(waiting_.size(), kPiece);
    ToPod piece{input_message(std::string_view(waiting_).substr(0, size)), size};
    waiting_.erase(0, size);
    return piece;
  }
  const bool has_end = input_has_ended_ && !stream_.is_port();
  // The job's terminal has input after that, too: of this client or of another one.
  if (has_end && stream_.terminal && stream_.is_attach()) {
    input_has_ended_ = false;
    return ToPod{input_message(kEndOfTransmission)};
  }
  if (!has_end || std::exchange(is_end_of_input_told_, true)) return std::nullopt;
  return ToPod{stream_.terminal ? input_message(kEndOfTransmission) : end_of_input_message()};
}

void PodChannel::write_server() {
  if (!is_open_ || is_writing_ || is_ending_ || has_left_ || told_end_) return;
  auto next = next_message();
  if (!next) return;
  is_writing_ = true;
  under_way_ = next->input_bytes;
  if (under_way_ > 0) wrote_input_ns_ = os::monotonic_ns();
  socket_->write(std::move(next->message),
                 [self = shared_from_this(), person = person_](const Error& error) {
                   self->is_writing_ = false;
                   const std::size_t sent = std::exchange(self->under_way_, 0);
                   self->received_ += sent;
                   if (self->person_ == person) self->taken_ += static_cast<std::uint32_t>(sent);
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
      expect_end(stream_.is_port()
                     ? StreamEnd{model::ChannelEnd::kNotOpened, 0,
                                 error_message_of({.failure = std::string(message.bytes)})}
                     : end_of_status(message.bytes));
  }
}

// The connection's end follows, or, from a server that forgets it, the time is over.
void PodChannel::expect_end(StreamEnd how) {
  if (!told_end_) wake_after(limits_.end_time);
  told_end_ = std::move(how);
}

void PodChannel::process_ended() {
  if (is_open_ && !told_end_ && can_take_over()) expect_end({});
}

// Both outputs of a job are one, as in its log.
void PodChannel::add_output(const PodMessage& message) {
  if (stream_.is_attach()) {
    keep(message.bytes);
    if (!wants_output_) return;
  }
  const bool is_error = message.kind == PodMessage::Kind::kErrorOutput && !stream_.is_attach();
  for (std::string_view rest = message.bytes; !rest.empty();) {
    const std::string_view piece = rest.substr(0, model::kMaxFrameBytes);
    rest.remove_prefix(piece.size());
    add_frame(is_error ? model::Frame(model::ErrorOutputFrame{piece})
                       : model::Frame(model::OutputFrame{piece}));
  }
}

void PodChannel::keep(std::string_view bytes) {
  latest_ += bytes;
  if (latest_.size() >= 2 * kLatest) latest_.erase(0, latest_.size() - kLatest);
}

void PodChannel::server_left() {
  if (told_end_) return tell_end();
  if (stream_.is_port()) return end({});
  cut();
}

// ---- to the person

void PodChannel::add_frame(const model::Frame& frame) {
  if (has_person_) frames_.push_back(model::encode_frame(frame));
}

void PodChannel::pump() {
  if (is_sending_ || has_left_) return;
  if (frames_.empty() && taken_ > 0 && !is_ending_ && has_person_) {
    add_frame(model::TakenFrame{std::exchange(taken_, 0)});
  }
  if (frames_.empty()) return is_ending_ ? leave() : read_server();
  is_sending_ = true;
  sends_since_ns_ = os::monotonic_ns();
  channel_.async_send(
      asio::buffer(frames_.front()), MSG_NOSIGNAL,
      [self = shared_from_this(), person = person_](const Error& error, std::size_t) {
        if (self->person_ != person) return;
        self->is_sending_ = false;
        self->frames_.pop_front();
        if (error) return self->person_left();
        self->pump();
      });
}

// ---- the end

// Of a process that was attached to, the server does not tell the exit code.
void PodChannel::tell_end() {
  const bool is_known = told_end_->end != model::ChannelEnd::kExited;
  if (is_known || !stream_.is_attach() || !hooks_.ask_end) return end(*told_end_);
  if (std::exchange(is_asking_, true)) return;
  hooks_.ask_end([weak = weak_from_this()](const std::optional<StreamEnd>& how) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    asio::post(self->timer_.get_executor(), [self, how] {
      if (how) return self->end(*how);
      if (!self->has_left_) self->cut();
    });
  });
}

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
