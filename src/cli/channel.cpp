#include "cli/channel.h"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/string_body.hpp>

namespace gpu_platform::cli {

namespace {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;

}  // namespace

Called<std::shared_ptr<Channel>> Channel::open(asio::io_context& io, Client& client,
                                               const std::string& target) {
  const auto fd = client.connect();
  if (!fd) return std::unexpected(fd.error());
  std::shared_ptr<Channel> channel(new Channel(Socket(io, asio::local::stream_protocol(), *fd)));
  auto& stream = channel->stream_;
  stream.binary(true);
  stream.auto_fragment(false);
  stream.read_message_max(model::kMaxFrame);
  websocket::response_type answer;
  error_code error;
  stream.handshake(answer, "localhost", target, error);
  if (error == websocket::error::upgrade_declined) {
    return std::unexpected(failure_of_answer(answer.result_int(), answer.body()));
  }
  if (error) {
    return std::unexpected(Failure{
        Failure::Kind::kBroken, "the connection to the daemon ended: " + error.message(), {}, {}});
  }
  return channel;
}

void Channel::begin(Events events) {
  events_ = std::move(events);
  read();
}

void Channel::resume() {
  is_paused_ = false;
  if (!is_reading_ && !is_over_) read();
}

void Channel::read() {
  is_reading_ = true;
  stream_.async_read(incoming_, [self = shared_from_this()](const error_code& error, std::size_t) {
    self->is_reading_ = false;
    if (error || self->is_over_) return self->end();
    self->take();
  });
}

void Channel::take() {
  const auto data = incoming_.data();
  const auto frame = model::decode_frame({static_cast<const char*>(data.data()), data.size()});
  if (!frame) return end();  // not a daemon of our kind
  events_.frame(*frame);
  incoming_.clear();
  if (!is_over_ && !is_paused_ && !is_reading_) read();
}

void Channel::send(const model::Frame& frame) {
  if (is_over_) return;
  outgoing_.push_back(model::encode_frame(frame));
  if (outgoing_.size() == 1) write();
}

void Channel::write() {
  stream_.async_write(asio::buffer(outgoing_.front()),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        // The reader sees the end, after what came before it.
                        if (error || self->is_over_) return;
                        self->outgoing_.pop_front();
                        if (!self->outgoing_.empty()) self->write();
                      });
}

void Channel::end() {
  close();
  // Events may hold what holds us.
  const Events events = std::exchange(events_, {});
  if (events.closed) events.closed();
}

void Channel::close() {
  if (std::exchange(is_over_, true)) return;
  error_code ignored;
  boost::beast::get_lowest_layer(stream_).close(ignored);
  // A read that is under way tells the end; without one it is told from here.
  if (!is_reading_)
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->end(); });
}

}  // namespace gpu_platform::cli
