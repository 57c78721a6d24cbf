#include "cli/connection_stream.h"

namespace gpu_platform::cli {

namespace {

constexpr Waiting kPatience{base::seconds(60), -1};

}  // namespace

ConnectionStream::ConnectionStream(boost::asio::io_context& io, Connection connection)
    : connection_(std::move(connection)), readiness_(io, connection_.fd()) {}

void ConnectionStream::close() {
  // The descriptor is the connection's.
  if (readiness_.is_open()) readiness_.release();
  connection_.close();
}

std::size_t ConnectionStream::read(std::span<char> room, boost::system::error_code& error) {
  if (room.empty()) return 0;
  const auto got = connection_.read(room, kPatience);
  error = !got        ? boost::asio::error::make_error_code(boost::asio::error::connection_reset)
          : *got == 0 ? boost::asio::error::make_error_code(boost::asio::error::eof)
                      : boost::system::error_code();
  return got.value_or(0);
}

std::size_t ConnectionStream::write(std::string_view bytes, boost::system::error_code& error) {
  const auto sent = connection_.write(bytes, kPatience);
  error = sent ? boost::system::error_code()
               : boost::asio::error::make_error_code(boost::asio::error::connection_reset);
  return sent.value_or(0);
}

}  // namespace gpu_platform::cli
