#include "http/http.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "base/percent.h"

namespace gpu_platform::http {

namespace {

namespace beast_http = boost::beast::http;
using boost::beast::string_view;
using boost::system::error_code;
using Why = TransportError::Kind;

// Keeps of an answer what the caller needs: status, content type, and the body's bytes as they
// come.
class AnswerParser : public beast_http::basic_parser<false> {
 public:
  HttpHead head;
  std::string body;

 private:
  void on_request_impl(beast_http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int status, string_view, int, error_code&) override {
    head.status = status;
  }
  void on_field_impl(beast_http::field name, string_view text, string_view value,
                     error_code&) override {
    if (name == beast_http::field::content_type) {
      head.content_type = std::string(value.substr(0, value.find(';')));
    }
    if (name == beast_http::field::location) head.location = std::string(value);
    if (boost::beast::iequals(text, "Api-Version")) head.api_version = std::string(value);
    if (boost::beast::iequals(text, "Libpod-Api-Version")) head.is_podman = true;
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

Transported<> send_all(Connection& connection, std::string_view bytes, const Waiting& waiting) {
  while (!bytes.empty()) {
    const auto sent = connection.write(bytes, waiting);
    // A daemon that refuses a request early may answer and close before it has read all: the answer
    // is what counts, so a connection that ends here is left for the reader to judge.
    if (!sent && sent.error().kind == Why::kBroken) return {};
    if (!sent) return std::unexpected(sent.error());
    bytes.remove_prefix(*sent);
  }
  return {};
}

std::string request_text(const Server& server, const HttpRequest& request) {
  std::string text = fmt::format(
      "{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: gpu-platform/{}\r\nAccept: {}\r\n"
      "Connection: {}\r\n",
      request.method, request.target, server.authority(), GP_VERSION, request.accept,
      request.upgrade.empty() ? "close" : "Upgrade");
  if (!request.upgrade.empty()) text += fmt::format("Upgrade: {}\r\n", request.upgrade);
  const std::string authorization = authorization_for(server);
  if (!authorization.empty()) text += fmt::format("Authorization: {}\r\n", authorization);
  if (!request.body.empty()) text += fmt::format("Content-Type: {}\r\n", request.content_type);
  if (!request.body.empty() || request.method != "GET") {
    text += fmt::format("Content-Length: {}\r\n", request.body.size());
  }
  return text + request.header_lines + "\r\n" + request.body;
}

}  // namespace

struct Exchange::State {
  explicit State(Connection opened) : connection(std::move(opened)) {
    parser.eager(true);
    parser.body_limit(boost::none);
    parser.header_limit(64 * 1024);
  }
  Connection connection;
  AnswerParser parser;
  std::string unparsed;
};

Exchange::Exchange(std::unique_ptr<State> state) : state_(std::move(state)) {}
Exchange::Exchange(Exchange&&) noexcept = default;
Exchange& Exchange::operator=(Exchange&&) noexcept = default;
Exchange::~Exchange() = default;

Transported<Exchange> Exchange::begin(const Server& server, const HttpRequest& request,
                                      const Waiting& waiting) {
  auto connection = Connection::open(server, {kConnectTime, waiting.interrupt_fd});
  if (!connection) return std::unexpected(std::move(connection).error());
  auto state = std::make_unique<State>(std::move(*connection));
  auto sent = send_all(state->connection, request_text(server, request), waiting);
  if (!sent) return std::unexpected(std::move(sent).error());
  return Exchange(std::move(state));
}

// Reads what has arrived, or waits for it, and gives it to the parser.
Transported<> Exchange::receive(const Waiting& waiting) {
  std::array<char, 64 * 1024> buffer;
  const auto got = state_->connection.read(buffer, waiting);
  if (!got) return std::unexpected(got.error());

  error_code error;
  AnswerParser& parser = state_->parser;
  if (*got == 0) {
    if (parser.got_some()) parser.put_eof(error);
    if (!parser.is_done() || error) {
      return std::unexpected(
          TransportError{Why::kBroken, "the connection to the daemon ended before its answer"});
    }
    return {};
  }
  std::string& unparsed = state_->unparsed;
  unparsed.append(buffer.data(), *got);
  while (!unparsed.empty() && !parser.is_done()) {
    const std::size_t used = parser.put(boost::asio::buffer(unparsed), error);
    unparsed.erase(0, used);
    if (error == beast_http::error::need_more) break;
    if (error) {
      return std::unexpected(TransportError{
          Why::kMalformed, fmt::format("the answer is not from the daemon: {}", error.message())});
    }
    if (used == 0) break;
  }
  return {};
}

const Server& Exchange::server() const {
  return state_->connection.server();
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

Transported<RawStream> Exchange::release() {
  if (server().is_network()) {
    return std::unexpected(TransportError{Why::kBroken, "only a Unix socket can be released"});
  }
  RawStream raw;
  raw.socket.reset(::fcntl(state_->connection.fd(), F_DUPFD_CLOEXEC, 3));
  if (!raw.socket.is_open()) {
    return std::unexpected(
        TransportError{Why::kBroken, fmt::format("keep a connection: {}", ::strerror(errno))});
  }
  raw.early = std::move(state_->parser.body) + state_->unparsed;
  state_->connection.close();
  return raw;
}

std::string authorization_for(const Server& server) {
  return server.is_network() && !server.token.empty() ? "Bearer " + server.token : std::string();
}

void append_query(std::string& query, std::string_view key, std::string_view value) {
  if (!query.empty()) query += '&';
  query.append(key).append("=").append(base::percent_encoded(value));
}

}  // namespace gpu_platform::http
