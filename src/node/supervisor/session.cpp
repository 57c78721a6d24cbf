#include "node/supervisor/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "node/channel_refusal.h"
#include "node/supervisor/session_socket.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

namespace {

constexpr int kTurns = 16;            // of output or frames, before anything else is looked at
constexpr int kLastTurns = 64;        // of what an ended job has left
constexpr std::size_t kPiece = 4096;  // fits into an empty pipe, however small that is

void close_if_open(int& fd) {
  if (fd >= 0) close(std::exchange(fd, -1));
}

bool is_for_later(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

// For a Unix socket that means: at most a quarter of its buffer is taken. So what is short, and the
// end, always has room left by output that is only sent then.
bool has_space_for_output(int channel) {
  pollfd handle{channel, POLLOUT, 0};
  return poll(&handle, 1, 0) == 1 && (handle.revents & POLLOUT) != 0;
}

bool dont_block(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

std::string failed(std::string_view what) {
  return std::string(what) + ": " + strerror(errno);
}

std::string in_words(std::int64_t ns) {
  const std::int64_t seconds = std::max<std::int64_t>(ns / 1'000'000'000, 1);
  if (seconds % 60 == 0) return std::to_string(seconds / 60) + " min";
  return std::to_string(seconds) + " s";
}

}  // namespace

Session::Session(const Options& options)
    : options_(options), idle_(options.request->idle_timeout_ms) {}

Session::~Session() {
  hang_up();
  if (listener_ >= 0) remove_session_socket(options_.run, options_.attempt);
  close_if_open(listener_);
  close_if_open(arriving_);
}

// ---- set-up

std::string Session::open() {
  const LaunchRequest& request = *options_.request;
  if (!request.takes_input) return {};
  std::string why = request.terminal ? open_terminal_pair() : open_pipes();
  if (!why.empty()) return why;
  listener_ = listen_for_people(options_.run, options_.attempt);
  return listener_ >= 0 ? std::string() : failed("make a socket for people");
}

std::string Session::open_terminal_pair() {
  const LaunchRequest& request = *options_.request;
  Terminal terminal;
  if (options_.pump == nullptr) return "a terminal and files for the output exclude each other";
  if (!open_terminal(*request.terminal, request.user.uid, geteuid() == 0, terminal)) {
    return failed("make a terminal");
  }
  terminal_ = input_ = source_ = terminal.ours;
  // Stays open here too, so that a job may close its own for a while.
  job_input_ = job_output_ = terminal.theirs;
  return {};
}

std::string Session::open_pipes() {
  int in[2];
  if (pipe2(in, O_CLOEXEC) != 0) return failed("make a pipe for its input");
  job_input_ = in[0];
  input_ = in[1];
  if (!dont_block(input_)) return failed("prepare a pipe");
  if (options_.pump == nullptr) return {};
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return failed("make a pipe for its output");
  source_ = out[0];
  job_output_ = out[1];
  return dont_block(source_) ? std::string() : failed("prepare a pipe");
}

void Session::begin(std::int64_t now) {
  if (terminal_ < 0) {
    close_if_open(job_input_);
    close_if_open(job_output_);
  }
  if (listener_ >= 0) idle_.touch(now);
}

// ---- the loop

void Session::watch(pollfd* handles) const {
  const bool is_behind = wants_output_ && shown_ < text_.size();
  handles[0] = {arriving_ >= 0 ? arriving_ : listener_, POLLIN, 0};
  handles[1] = {person_, static_cast<short>(POLLIN | (is_behind ? POLLOUT : 0)), 0};
  handles[2] = {has_space() ? source_ : -1, POLLIN, 0};
  handles[3] = {waiting_.empty() ? -1 : input_, POLLOUT, 0};
}

std::int64_t Session::wake_at() const {
  const bool is_behind = person_ >= 0 && wants_output_ && shown_ < text_.size();
  std::int64_t next = 0;
  for (const std::int64_t at :
       {is_behind ? progress_at_ + kTimeout : 0, idle_.announcement(), idle_.deadline()}) {
    if (at != 0 && (next == 0 || at < next)) next = at;
  }
  return next;
}

void Session::work(std::int64_t now) {
  take_arrival(now);
  read_frames(now);
  feed_input();
  for (int turn = 0; turn < kTurns && has_space() && read_source(now); ++turn) show(now);
  announce_idleness(now);
  show(now);
}

bool Session::is_idle(std::int64_t now) {
  if (idle_.deadline() == 0 || now < idle_.deadline()) return false;
  idle_.drop();
  return true;
}

void Session::job_stands_still(bool is_so, std::int64_t now) {
  if (is_so) {
    idle_.pause(now);
  } else {
    idle_.go_on(now);
  }
}

void Session::announce_idleness(std::int64_t now) {
  if (idle_.announcement() == 0 || now < idle_.announcement()) return;
  idle_.announced();
  note(
      "[gpu-platform: there was no input and no output for a long time; if that "
      "goes on, the job is ended in " +
          in_words(idle_.notice()) + "]",
      now);
}

// A terminal shows it now or later. A pipe carries only what the job prints.
void Session::note(const std::string& words, std::int64_t now) {
  if (terminal_ >= 0) {
    append("\r\n" + words + "\r\n", now);
  } else if (person_ >= 0) {
    send(model::ErrorOutputFrame{words + "\n"});
  }
}

void Session::end(model::ChannelEnd how, std::uint8_t value, std::int64_t now) {
  if (listener_ < 0) return;
  for (int turn = 0; turn < kLastTurns && read_source(now); ++turn) {
  }
  take_last_arrivals(now);
  idle_.drop();
  has_ended_ = true;
  end_ = {how, value, {}};
  remove_session_socket(options_.run, options_.attempt);
  close_if_open(listener_);
  show(now);
}

// ---- the attached client

bool Session::has_arrival() {
  while (arriving_ < 0 && listener_ >= 0) {
    arriving_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (arriving_ < 0) return false;
    if (!is_of_our_own(arriving_)) close_if_open(arriving_);
  }
  return arriving_ >= 0;
}

void Session::take_arrival(std::int64_t now) {
  if (!has_arrival()) return;
  char buffer[64];
  const os::Packet packet = os::receive_packet(arriving_, buffer, sizeof buffer);
  if (packet.kind == os::Packet::Kind::kNothing) return;
  close_if_open(arriving_);
  if (packet.fd >= 0) welcome(packet.fd, now);
}

// Takes the last connections on their way: a shut socket still delivers what was sent before, and a
// later sender gets an error.
void Session::take_last_arrivals(std::int64_t now) {
  shutdown(listener_, SHUT_RD);
  while (has_arrival()) {
    shutdown(arriving_, SHUT_RD);
    take_arrival(now);
    close_if_open(arriving_);
  }
}

void Session::welcome(int channel, std::int64_t now) {
  char buffer[256];
  const bool is_ready = dont_block(channel);
  // Sent before the channel came here.
  const os::Packet packet = os::receive_packet(channel, buffer, sizeof buffer);
  if (packet.fd >= 0) close(packet.fd);
  const auto start = packet.kind == os::Packet::Kind::kMessage ? decode_channel_start(packet.bytes)
                                                               : std::optional<ChannelStart>();
  if (!is_ready || !start) {
    refuse_channel(channel, "the request is damaged");
    close(channel);
    return;
  }
  part("another client has attached to job " + std::to_string(options_.attempt.job.value));
  person_ = channel;
  has_called_ = true;
  wants_output_ = !start->without_output;
  shown_ = text_.size() - (wants_output_ ? std::min(text_.size(), kRing) : 0);
  progress_at_ = now;
  waiting_.clear();  // its sender has gone, or sends it again
  idle_.touch(now);
  send(model::OpenedFrame{received_});
  if (start->terminal) resize(*start->terminal);
}

// Has the person leave a job that goes on.
void Session::part(std::string_view why) {
  if (person_ < 0) return;
  send(model::EndFrame{model::ChannelEnd::kDetached, 0, why});
  hang_up();
}

void Session::hang_up() {
  close_if_open(person_);
  taken_ = 0;
}

// ---- from the person

void Session::read_frames(std::int64_t now) {
  char buffer[model::kMaxFrame + 1];
  for (int turn = 0; turn < kTurns && person_ >= 0; ++turn) {
    const os::Packet packet = os::receive_packet(person_, buffer, sizeof buffer);
    if (packet.fd >= 0) close(packet.fd);
    if (packet.kind == os::Packet::Kind::kNothing) return;
    const auto frame = packet.kind == os::Packet::Kind::kMessage ? model::decode_frame(packet.bytes)
                                                                 : std::optional<model::Frame>();
    if (!frame || !take(*frame, now)) return hang_up();
    has_called_ = true;
  }
}

// False: not a frame that a person may send now.
bool Session::take(const model::Frame& frame, std::int64_t now) {
  if (const auto* input = std::get_if<model::InputFrame>(&frame)) {
    return take_input(input->bytes, now);
  }
  if (const auto* size = std::get_if<model::ResizeFrame>(&frame)) {
    resize(size->size);
    return true;
  }
  if (!std::holds_alternative<model::EndOfInputFrame>(frame)) return false;
  if (terminal_ >= 0) {
    if (waiting_.size() >= model::kInputWindow) return false;
    termios modes{};
    const bool known = tcgetattr(terminal_, &modes) == 0;
    waiting_ += static_cast<char>(known ? modes.c_cc[VEOF] : 4);
  } else {
    input_ends_ = true;
  }
  feed_input();
  return true;
}

bool Session::take_input(std::string_view bytes, std::int64_t now) {
  if (waiting_.size() + bytes.size() > model::kInputWindow) return false;
  waiting_ += bytes;
  idle_.touch(now);
  feed_input();
  return true;
}

void Session::feed_input() {
  while (!waiting_.empty() && input_ >= 0) {
    const ssize_t wrote = write(input_, waiting_.data(), waiting_.size());
    if (wrote < 0 && is_for_later(errno)) return;
    if (wrote < 0) {
      close_input();
      break;
    }
    has_taken(static_cast<std::size_t>(wrote));
  }
  if (input_ < 0) {  // no process reads it any more: dropped, so that the person need not wait
    has_taken(waiting_.size());
  } else if (input_ends_ && waiting_.empty()) {
    close_input();
  }
}

void Session::has_taken(std::size_t bytes) {
  taken_ += static_cast<std::uint32_t>(bytes);
  received_ += bytes;
  waiting_.erase(0, bytes);
}

void Session::close_input() {
  if (terminal_ < 0) close(input_);
  input_ = -1;
}

// A terminal of the same size as before tells its programs too: there is a new screen to be filled.
// The kernel signals them itself when the size changes. Users decide which group is in the
// terminal's foreground, so we must not signal it as root.
void Session::resize(model::TerminalSize size) const {
  if (terminal_ < 0) return;
  winsize before{};
  const bool is_same = ioctl(terminal_, TIOCGWINSZ, &before) == 0 &&
                       before.ws_col == size.columns && before.ws_row == size.rows;
  if (is_same) {
    const std::uint16_t other = size.rows > 1 ? size.rows - 1 : size.rows + 1;
    resize_terminal(terminal_, {size.columns, other});
  }
  resize_terminal(terminal_, size);
}

// ---- from the job

bool Session::has_space() const {
  return person_ < 0 || !wants_output_ || text_.size() - shown_ < kRing;
}

// False when there is nothing now.
bool Session::read_source(std::int64_t now) {
  if (source_ < 0) return false;
  char buffer[model::kMaxFrameBytes];
  const ssize_t got = read(source_, buffer, sizeof buffer);
  if (got < 0 && is_for_later(errno)) return false;
  if (got <= 0) {  // every other side is closed, or the terminal was hung up
    if (terminal_ < 0) close(source_);
    source_ = -1;
    return false;
  }
  keep({buffer, static_cast<std::size_t>(got)}, now);
  return true;
}

void Session::keep(std::string_view bytes, std::int64_t now) {
  store(bytes);
  idle_.touch(now);
  append(bytes, now);
}

void Session::append(std::string_view bytes, std::int64_t now) {
  if (shown_ == text_.size()) progress_at_ = now;  // from here on the person is behind
  text_ += bytes;
  if (person_ < 0 || !wants_output_) shown_ = text_.size();
  if (text_.size() < 2 * kRing) return;
  const std::size_t surplus = std::min(text_.size() - kRing, shown_);
  text_.erase(0, surplus);
  shown_ -= surplus;
}

// The pump's pipe is empty before and after: nothing else writes into it.
void Session::store(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote =
        write(options_.pump->write_end(), bytes.data(), std::min(bytes.size(), kPiece));
    if (wrote <= 0) return;
    options_.pump->pump();
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

// ---- to the person

void Session::show(std::int64_t now) {
  if (person_ < 0) return;
  if (taken_ > 0) send(model::TakenFrame{std::exchange(taken_, 0)});
  while (wants_output_ && shown_ < text_.size() && has_space_for_output(person_)) {
    const std::size_t size = std::min(text_.size() - shown_, model::kMaxFrameBytes);
    send(model::OutputFrame{std::string_view(text_).substr(shown_, size)});
    shown_ += size;
    progress_at_ = now;
  }
  if (!wants_output_ || shown_ == text_.size()) {
    if (!has_ended_) return;
    send(end_);
    hang_up();
  } else if (now - progress_at_ >= kTimeout) {
    part("the job's output was not read for " + in_words(kTimeout));
  }
}

void Session::send(const model::Frame& frame) const {
  // A person that has gone is seen at the next read.
  os::send_packet(person_, model::encode_frame(frame));
}

}  // namespace gpu_platform::node
