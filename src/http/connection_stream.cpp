#include "http/connection_stream.h"

#include <boost/asio/compose.hpp>

namespace gpu_platform::http {

namespace {

constexpr Waiting kTimeout{base::seconds(60), -1};

}  // namespace

ConnectionStream::ConnectionStream(boost::asio::io_context& io, Connection connection)
    : connection_(std::move(connection)), readiness_(io, connection_.fd()) {}

void ConnectionStream::close() {
  // The descriptor is the connection's.
  if (readiness_.is_open()) readiness_.release();
  connection_.close();
}

// Tries the step whenever it may succeed. `ends`: that it moves nothing is the stream's end.
template <class Try>
void ConnectionStream::step_by_step(Try attempt, bool ends, Moved done) {
  boost::asio::async_compose<Moved, void(boost::system::error_code, std::size_t)>(
      [this, attempt, ends, has_begun = false](auto& self,
                                               boost::system::error_code error = {}) mutable {
        // The caller must have returned before it is told.
        if (!std::exchange(has_begun, true)) {
          return boost::asio::post(get_executor(), std::move(self));
        }
        if (!error && !readiness_.is_open()) error = boost::asio::error::operation_aborted;
        if (error) return self.complete(error, 0);
        const Transported<Step> step = attempt();
        if (!step) return self.complete(boost::asio::error::connection_reset, 0);
        if (step->wants != Wants::kNothing) {
          return readiness_.async_wait(step->wants == Wants::kReadable
                                           ? boost::asio::posix::descriptor_base::wait_read
                                           : boost::asio::posix::descriptor_base::wait_write,
                                       std::move(self));
        }
        if (ends && step->bytes == 0) return self.complete(boost::asio::error::eof, 0);
        self.complete({}, step->bytes);
      },
      done, readiness_);
}

void ConnectionStream::begin_read(boost::asio::mutable_buffer room, Moved done) {
  step_by_step(
      [this, room] { return connection_.try_read({static_cast<char*>(room.data()), room.size()}); },
      room.size() > 0, std::move(done));
}

void ConnectionStream::begin_write(boost::asio::const_buffer bytes, Moved done) {
  step_by_step(
      [this, bytes] {
        return connection_.try_write({static_cast<const char*>(bytes.data()), bytes.size()});
      },
      false, std::move(done));
}

std::size_t ConnectionStream::read(std::span<char> room, boost::system::error_code& error) {
  if (room.empty()) return 0;
  const auto got = connection_.read(room, kTimeout);
  error = !got        ? boost::asio::error::make_error_code(boost::asio::error::connection_reset)
          : *got == 0 ? boost::asio::error::make_error_code(boost::asio::error::eof)
                      : boost::system::error_code();
  return got.value_or(0);
}

std::size_t ConnectionStream::write(std::string_view bytes, boost::system::error_code& error) {
  const auto sent = connection_.write(bytes, kTimeout);
  error = sent ? boost::system::error_code()
               : boost::asio::error::make_error_code(boost::asio::error::connection_reset);
  return sent.value_or(0);
}

}  // namespace gpu_platform::http
