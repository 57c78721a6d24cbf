#include "listener/client_stream.h"

#include <algorithm>
#include <utility>

namespace gpu_platform::listener {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Outcome = Transport::Outcome;

constexpr std::size_t kMaxKeptOutput = 16 * 1024;  // memory of the buffer while it is empty
constexpr std::size_t kMaxDrained = 1 << 20;

}  // namespace

ClientStream::ClientStream(Client& owner, ClientContext context, AcceptedClient accepted)
    : owner_(owner),
      with_(context),
      accepted_(std::move(accepted)),
      transport_(accepted_.socket.native_handle(), accepted_.tls) {}

void ClientStream::begin() {
  error_code ignored;
  accepted_.socket.non_blocking(true, ignored);
  set_deadline(with_.times.handshake);
}

bool ClientStream::handshake() {
  const Outcome outcome = transport_.handshake();
  if (outcome != Outcome::kDone) wait(outcome);
  return outcome == Outcome::kDone;
}

std::optional<std::string_view> ClientStream::read() {
  const auto [outcome, bytes] = transport_.read(with_.scratch);
  if (outcome == Outcome::kDone) return std::string_view(with_.scratch.data(), bytes);
  wait(outcome);
  return std::nullopt;
}

bool ClientStream::flush(bool keeps_deadline) {
  while (written_ < out_.size()) {
    const auto [outcome, bytes] = transport_.write(std::string_view(out_).substr(written_));
    if (outcome != Outcome::kDone) {
      if (deadline_ == Client::Clock::time_point::max()) set_deadline(with_.times.write);
      wait(outcome);
      return false;
    }
    written_ += bytes;
    if (!keeps_deadline) clear_deadline();
  }
  out_.clear();
  if (out_.capacity() > kMaxKeptOutput) out_.shrink_to_fit();
  written_ = 0;
  return true;
}

void ClientStream::finish() {
  transport_.finish();
  set_deadline(with_.times.drain);
}

void ClientStream::drain() {
  while (drained_ <= kMaxDrained) {
    const auto bytes = read();
    if (!bytes) return;
    drained_ += bytes->size();
  }
  owner_.close();
}

void ClientStream::shorten_deadline(std::chrono::milliseconds after) {
  deadline_ = std::min(deadline_, Client::Clock::now() + after);
}

// Waits for what the transport wants, or closes.
void ClientStream::wait(Outcome outcome) {
  if (outcome != Outcome::kWantsRead && outcome != Outcome::kWantsWrite) return owner_.close();
  const bool to_write = outcome == Outcome::kWantsWrite;
  bool& waits = to_write ? waits_to_write_ : waits_to_read_;
  if (std::exchange(waits, true)) return;
  accepted_.socket.async_wait(
      to_write ? asio::socket_base::wait_write : asio::socket_base::wait_read,
      [owner = owner_.shared_from_this(), &waits](const error_code& error) {
        waits = false;
        if (error) return owner->close();
        owner->go();
      });
}

void ClientStream::close() {
  clear_deadline();
  error_code ignored;
  accepted_.socket.close(ignored);
  with_.connection_table.leave(accepted_.key);
  accepted_.closed(&owner_);
}

}  // namespace gpu_platform::listener
