#include "api/rest/channel_bridge.h"

#include <sys/socket.h>
#include <utility>

#include <boost/asio/buffer.hpp>

namespace gpu_platform::api {

namespace {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;

// A client has this time to answer a close; a channel itself may be silent for days.
constexpr std::chrono::seconds kHandshakeTime{5};

}  // namespace

ChannelBridge::ChannelBridge(LocalSocket socket, ChannelSocket channel, std::function<void()> ended)
    : client_(std::move(socket)),
      job_(client_.get_executor(), asio::generic::seq_packet_protocol(AF_UNIX, 0),
           channel.release()),
      witness_(channel.witness()),
      ended_(std::move(ended)),
      from_client_(model::kMaxFrame) {
  client_.binary(true);
  client_.auto_fragment(false);
  client_.read_message_max(model::kMaxFrame);
  client_.set_option(
      websocket::stream_base::timeout{kHandshakeTime, websocket::stream_base::none(), false});
}

void ChannelBridge::begin(const Request& request) {
  client_.async_accept(request, [self = shared_from_this()](const Error& error) {
    if (error) return self->close();
    self->is_open_ = true;
    if (self->leaving_) return self->end_websocket(*self->leaving_);
    self->read_client();
    self->read_job();
  });
}

void ChannelBridge::read_client() {
  client_.async_read(from_client_,
                     [self = shared_from_this()](const Error& error, std::size_t bytes) {
                       if (error) return self->close();
                       // What comes between our close and the client's is dropped.
                       if (!self->is_closing_) self->write_job(bytes);
                     });
}

void ChannelBridge::write_job(std::size_t bytes) {
  if (bytes == 0) return read_client();  // a packet of nothing would look like the end
  job_.async_send(from_client_.data(), MSG_NOSIGNAL,
                  [self = shared_from_this()](const Error& error, std::size_t) {
                    // A job's side that is gone is seen, after its last words, by the reader.
                    if (error) return;
                    self->from_client_.clear();
                    self->read_client();
                  });
}

void ChannelBridge::read_job() {
  job_.async_receive(asio::buffer(from_job_), flags_,
                     [self = shared_from_this()](const Error& error, std::size_t bytes) {
                       // The kernel tells of a peer that left something unread before it hands
                       // over the peer's last words.
                       const bool has_more = error == asio::error::connection_reset &&
                                             !std::exchange(self->was_reset_, true);
                       if (has_more) return self->read_job();
                       if (error || bytes == 0) {
                         return self->end_websocket(websocket::close_code::normal);
                       }
                       self->write_client(bytes);
                     });
}

void ChannelBridge::write_client(std::size_t bytes) {
  client_.async_write(asio::buffer(from_job_.data(), bytes),
                      [self = shared_from_this()](const Error& error, std::size_t) {
                        if (error) return self->close();
                        self->read_job();
                      });
}

void ChannelBridge::end_websocket(websocket::close_reason reason) {
  if (std::exchange(is_closing_, true)) return;
  client_.async_close(reason, [self = shared_from_this()](const Error&) { self->close(); });
}

// The library takes no close before the handshake is over.
void ChannelBridge::leave(websocket::close_reason reason) {
  leaving_ = reason;
  if (is_open_) end_websocket(reason);
}

void ChannelBridge::close() {
  is_closing_ = true;
  Error ignored;
  job_.close(ignored);
  witness_.reset();
  boost::beast::get_lowest_layer(client_).close(ignored);
  if (const auto ended = std::exchange(ended_, nullptr)) ended();
}

}  // namespace gpu_platform::api
