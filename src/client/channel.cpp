#include "client/channel.h"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/string_body.hpp>

namespace gpu_platform::client {

namespace {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;

}  // namespace

Called<std::shared_ptr<Channel>> Channel::open(asio::io_context& io, Client& client,
                                               const std::string& target) {
  auto connection = client.connect();
  if (!connection) return std::unexpected(std::move(connection).error());
  const http::Server server = connection->server();
  std::shared_ptr<Channel> channel(new Channel(io, std::move(*connection)));
  auto& stream = channel->stream_;
  stream.binary(true);
  stream.auto_fragment(false);
  stream.read_message_max(model::kMaxFrame);
  stream.set_option(websocket::stream_base::decorator([&](websocket::request_type& request) {
    const std::string authorization = http::authorization_for(server);
    if (!authorization.empty()) {
      request.set(boost::beast::http::field::authorization, authorization);
    }
  }));
  websocket::response_type answer;
  error_code error;
  stream.handshake(answer, server.authority(), target, error);
  if (error == websocket::error::upgrade_declined) {
    const http::HttpHead head{static_cast<int>(answer.result_int()),
                              {},
                              std::string(answer[boost::beast::http::field::location])};
    return std::unexpected(failure_of_answer(server, head, answer.body()));
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
  stream_.next_layer().close();
  // A read that is under way tells the end; without one it is told from here.
  if (!is_reading_)
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->end(); });
}

}  // namespace gpu_platform::client
