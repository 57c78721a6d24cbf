#include "cli/http.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "os/descriptor.h"

namespace gpu_platform::cli {

namespace {

namespace http = boost::beast::http;
using boost::beast::string_view;
using boost::system::error_code;
using Kind = TransportError::Kind;

// Keeps of an answer what the caller needs: status, content type, and the body's bytes as they
// come.
class AnswerParser : public http::basic_parser<false> {
 public:
  HttpHead head;
  std::string body;

 private:
  void on_request_impl(http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int status, string_view, int, error_code&) override {
    head.status = status;
  }
  void on_field_impl(http::field name, string_view, string_view value, error_code&) override {
    if (name == http::field::content_type) {
      head.content_type = std::string(value.substr(0, value.find(';')));
    }
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view bytes, error_code&) override {
    body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view bytes, error_code&) override {
    body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_finish_impl(error_code&) override {}
};

std::unexpected<TransportError> failed(Kind kind, std::string_view what, int error) {
  char buffer[128];
  return std::unexpected(
      TransportError{kind, fmt::format("{}: {}", what, strerror_r(error, buffer, sizeof buffer))});
}

Transported<> connect_to(int fd, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return std::unexpected(
        TransportError{Kind::kNoDaemon, fmt::format("{}: a socket's path has at most {} bytes",
                                                    path, sizeof address.sun_path - 1)});
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  while (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EINTR) return failed(Kind::kNoDaemon, path, errno);
  }
  return {};
}

Transported<> send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    // A daemon that refuses a request early may answer and close before it has read all: the answer
    // is what counts, so a broken pipe here is left for the reader to judge.
    if (sent < 0 && errno == EPIPE) return {};
    if (sent < 0) return failed(Kind::kBroken, "the connection to the daemon ended", errno);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

std::string request_text(const HttpRequest& request) {
  std::string text = fmt::format(
      "{} {} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: gpu-platform/{}\r\nAccept: {}\r\n"
      "Connection: close\r\n",
      request.method, request.target, GP_VERSION, request.accept);
  if (!request.body.empty()) text += "Content-Type: application/json\r\n";
  if (!request.body.empty() || request.method != "GET") {
    text += fmt::format("Content-Length: {}\r\n", request.body.size());
  }
  return text + "\r\n" + request.body;
}

// Returns when the socket has bytes or has ended.
Transported<> wait_for_bytes(int fd, const Waiting& waiting) {
  std::array<pollfd, 2> watched = {pollfd{fd, POLLIN, 0}, pollfd{waiting.interrupt_fd, POLLIN, 0}};
  const std::int64_t limit_ms =
      waiting.at_most.has_value() ? base::whole_milliseconds(*waiting.at_most) : -1;
  while (true) {
    const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(limit_ms));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return failed(Kind::kBroken, "poll", errno);
    if (ready == 0) {
      return std::unexpected(TransportError{Kind::kTimedOut, "the daemon does not answer"});
    }
    if (watched[1].revents != 0) return std::unexpected(TransportError{Kind::kInterrupted, {}});
    return {};
  }
}

}  // namespace

struct Exchange::State {
  explicit State(int fd) : socket(fd) {
    parser.eager(true);
    parser.body_limit(boost::none);
    parser.header_limit(64 * 1024);
  }
  os::Descriptor socket;
  AnswerParser parser;
  std::string unparsed;
};

Exchange::Exchange(std::unique_ptr<State> state) : state_(std::move(state)) {}
Exchange::Exchange(Exchange&&) noexcept = default;
Exchange& Exchange::operator=(Exchange&&) noexcept = default;
Exchange::~Exchange() = default;

Transported<int> connect_local(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return failed(Kind::kNoDaemon, "socket", errno);
  if (auto connected = connect_to(fd, path); !connected) {
    ::close(fd);
    return std::unexpected(std::move(connected).error());
  }
  return fd;
}

Transported<Exchange> Exchange::begin(const std::string& path, const HttpRequest& request) {
  const auto fd = connect_local(path);
  if (!fd) return std::unexpected(fd.error());
  auto state = std::make_unique<State>(*fd);
  if (auto sent = send_all(*fd, request_text(request)); !sent) {
    return std::unexpected(std::move(sent).error());
  }
  return Exchange(std::move(state));
}

// Reads what has arrived, or waits for it, and gives it to the parser.
Transported<> Exchange::receive(const Waiting& waiting) {
  if (auto waited = wait_for_bytes(state_->socket.get(), waiting); !waited) return waited;
  std::array<char, 64 * 1024> buffer;
  ssize_t got = 0;
  do {
    got = ::recv(state_->socket.get(), buffer.data(), buffer.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return failed(Kind::kBroken, "the connection to the daemon ended", errno);

  error_code error;
  AnswerParser& parser = state_->parser;
  if (got == 0) {
    if (parser.got_some()) parser.put_eof(error);
    if (!parser.is_done() || error) {
      return std::unexpected(
          TransportError{Kind::kBroken, "the connection to the daemon ended before its answer"});
    }
    return {};
  }
  std::string& unparsed = state_->unparsed;
  unparsed.append(buffer.data(), static_cast<std::size_t>(got));
  while (!unparsed.empty() && !parser.is_done()) {
    const std::size_t used = parser.put(boost::asio::buffer(unparsed), error);
    unparsed.erase(0, used);
    if (error == http::error::need_more) break;
    if (error) {
      return std::unexpected(TransportError{
          Kind::kMalformed, fmt::format("what answers is not the daemon: {}", error.message())});
    }
    if (used == 0) break;
  }
  return {};
}

Transported<HttpHead> Exchange::head(const Waiting& waiting) {
  while (!state_->parser.is_header_done()) {
    if (auto received = receive(waiting); !received) {
      return std::unexpected(std::move(received).error());
    }
  }
  return state_->parser.head;
}

Transported<std::string> Exchange::more(const Waiting& waiting) {
  while (state_->parser.body.empty() && !state_->parser.is_done()) {
    if (auto received = receive(waiting); !received) {
      return std::unexpected(std::move(received).error());
    }
  }
  return std::exchange(state_->parser.body, {});
}

Transported<std::string> Exchange::rest(const Waiting& waiting) {
  while (!state_->parser.is_done()) {
    if (auto received = receive(waiting); !received) {
      return std::unexpected(std::move(received).error());
    }
  }
  return std::exchange(state_->parser.body, {});
}

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      encoded.push_back(c);
    } else {
      fmt::format_to(std::back_inserter(encoded), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

void append_query(std::string& query, std::string_view key, std::string_view value) {
  if (!query.empty()) query += '&';
  query.append(key).append("=").append(percent_encoded(value));
}

}  // namespace gpu_platform::cli
