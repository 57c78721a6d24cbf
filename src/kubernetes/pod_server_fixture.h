#pragma once

#include <sys/socket.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>

#include "kubernetes/endpoint.h"

// A server for tests that lets into its pods, over plain TCP: a script plays the pod's side of each
// connection, on a thread of the connection's own.

namespace gpu_platform::kubernetes {

class PodServer {
  using Stream = boost::beast::websocket::stream<boost::asio::ip::tcp::socket>;

 public:
  // The pod's side of a connection.
  class Pod {
   public:
    Pod(Stream& stream, std::string path) : stream_(stream), path_(std::move(path)) {}

    const std::string& path() const { return path_; }
    // Returns the next message; empty: the client has gone.
    std::string read() {
      boost::beast::flat_buffer buffer;
      boost::system::error_code error;
      stream_.read(buffer, error);
      const auto bytes = buffer.cdata();
      if (error) return {};
      return {static_cast<const char*>(bytes.data()), bytes.size()};
    }
    void write(int stream, std::string_view bytes) {
      boost::system::error_code ignored;
      std::string message(1, static_cast<char>(stream));
      message += bytes;
      stream_.binary(true);
      stream_.write(boost::asio::buffer(message), ignored);
    }
    // Calls `then` when so many pings have come, from within read().
    void after_pings(int pings, std::function<void()> then) {
      using Kind = boost::beast::websocket::frame_type;
      stream_.control_callback([pings, then = std::move(then)](Kind kind, auto&&...) mutable {
        if (kind == Kind::ping && --pings == 0) then();
      });
    }
    // What is no WebSocket.
    void write_raw(std::string_view bytes) {
      boost::system::error_code ignored;
      stream_.next_layer().write_some(boost::asio::buffer(bytes), ignored);
    }
    // Closes in good order. Without it the connection just ends with the script.
    void close() {
      boost::system::error_code ignored;
      stream_.close(boost::beast::websocket::close_code::normal, ignored);
    }
    void exit(int code) {
      write(3, code == 0 ? R"({"status":"Success"})"
                         : fmt::format(R"({{"status":"Failure","reason":"NonZeroExitCode","details":
                           {{"causes":[{{"reason":"ExitCode","message":"{}"}}]}}}})",
                                       code));
      close();
    }

   private:
    Stream& stream_;
    const std::string path_;
  };
  using Script = std::function<void(Pod& pod)>;

  // `protocol`: that it chooses; empty: the one that the client asks for.
  explicit PodServer(Script script, std::string protocol = {})
      : script_(std::move(script)),
        protocol_(std::move(protocol)),
        acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}),
        port_(acceptor_.local_endpoint().port()),
        thread_([this] { accept_all(); }) {}

  ~PodServer() {
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    thread_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }
    for (std::thread& each : connections_) each.join();
  }
  PodServer(const PodServer&) = delete;
  PodServer& operator=(const PodServer&) = delete;

  std::uint16_t port() const { return static_cast<std::uint16_t>(port_); }
  std::string address() const { return fmt::format("http://127.0.0.1:{}", port_); }

 private:
  void accept_all() {
    while (true) {
      boost::system::error_code error;
      boost::asio::ip::tcp::socket socket(io_);
      acceptor_.accept(socket, error);
      if (error) return;
      const std::lock_guard lock(mutex_);
      open_.push_back(socket.native_handle());
      connections_.emplace_back(
          [this, made = std::move(socket)]() mutable { serve(std::move(made)); });
    }
  }

  void serve(boost::asio::ip::tcp::socket socket) {
    namespace http = boost::beast::http;
    boost::system::error_code error;
    boost::beast::flat_buffer buffer;
    http::request<http::string_body> request;
    http::read(socket, buffer, request, error);
    const int fd = socket.native_handle();
    Stream stream(std::move(socket));
    if (!error) {
      const std::string protocol =
          protocol_.empty() ? std::string(request[http::field::sec_websocket_protocol]) : protocol_;
      stream.set_option(boost::beast::websocket::stream_base::decorator(
          [protocol](boost::beast::websocket::response_type& answer) {
            answer.set(http::field::sec_websocket_protocol, protocol);
          }));
      stream.accept(request, error);
    }
    Pod pod(stream, std::string(request.target()));
    if (!error) script_(pod);
    const std::lock_guard lock(mutex_);
    std::erase(open_, fd);
    stream.next_layer().close(error);
  }

  const Script script_;
  const std::string protocol_;
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  const int port_;
  std::mutex mutex_;
  std::vector<int> open_;
  std::vector<std::thread> connections_;
  std::thread thread_;  // last: it uses all others
};

}  // namespace gpu_platform::kubernetes
