#include "cli/jobs/port_forward.h"

#include <array>
#include <chrono>
#include <csignal>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "base/percent.h"
#include "cli/client_names.h"
#include "client/channel.h"

namespace gpu_platform::cli {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// More than this the client does not take off us is left in the channel.
constexpr std::size_t kMaxUnwritten = 256 * 1024;
constexpr std::chrono::seconds kBetweenQuestions{1};

std::string port_target(const std::string& job, std::uint16_t port) {
  return fmt::format("/v1/jobs/{}/ports/{}", base::percent_encoded(job), port);
}

// One connection of a local program, and its channel.
class Carried : public std::enable_shared_from_this<Carried> {
 public:
  using Refused = std::function<void(const std::string& why)>;

  Carried(tcp::socket socket, std::shared_ptr<client::Channel> channel, Refused refused)
      : socket_(std::move(socket)), channel_(std::move(channel)), refused_(std::move(refused)) {}

  void begin() {
    channel_->begin({[self = shared_from_this()](const model::Frame& frame) { self->take(frame); },
                     [self = shared_from_this()] { self->close_when_written(); }});
  }

 private:
  void take(const model::Frame& frame) {
    if (std::holds_alternative<model::OpenedFrame>(frame)) {
      is_open_ = true;
      read();
    } else if (const auto* output = std::get_if<model::OutputFrame>(&frame)) {
      unwritten_ += output->bytes;
      write();
      if (unwritten_.size() > kMaxUnwritten) channel_->pause();
    } else if (const auto* taken = std::get_if<model::TakenFrame>(&frame)) {
      window_.taken(taken->bytes);
      read();
    } else if (const auto* end = std::get_if<model::EndFrame>(&frame)) {
      if (end->end == model::ChannelEnd::kNotOpened) refused_(std::string(end->text));
      close_when_written();
    }
  }

  void read() {
    if (!is_open_ || is_reading_ || is_at_end_ || window_.most() == 0) return;
    is_reading_ = true;
    socket_.async_read_some(
        asio::buffer(bytes_.data(), window_.most()),
        [self = shared_from_this()](const error_code& error, std::size_t count) {
          self->is_reading_ = false;
          if (error) {
            self->is_at_end_ = true;
            if (error != asio::error::eof) return self->close();
            return self->channel_->send(model::EndOfInputFrame{});
          }
          self->window_.sent(count);
          self->channel_->send(model::InputFrame{{self->bytes_.data(), count}});
          self->read();
        });
  }

  void write() {
    if (!writing_.empty() || unwritten_.empty()) return;
    writing_.swap(unwritten_);
    asio::async_write(socket_, asio::buffer(writing_),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        self->writing_.clear();
                        if (error) return self->close();
                        if (self->unwritten_.size() <= kMaxUnwritten) self->channel_->resume();
                        self->write();
                        if (self->is_ending_) self->close_when_written();
                      });
  }

  void close_when_written() {
    is_ending_ = true;
    if (writing_.empty() && unwritten_.empty()) close();
  }

  void close() {
    channel_->close();
    error_code ignored;
    socket_.close(ignored);
  }

  tcp::socket socket_;
  std::shared_ptr<client::Channel> channel_;
  Refused refused_;
  client::InputWindow window_;
  std::array<char, model::kMaxFrameBytes> bytes_;
  std::string unwritten_;
  std::string writing_;
  bool is_open_ = false;
  bool is_reading_ = false;
  bool is_at_end_ = false;
  bool is_ending_ = false;
};

class Forwarder {
 public:
  Forwarder(Console& console, Client& client, const PortForward& forward,
            const ForwardEvents& events)
      : console_(console),
        client_(client),
        forward_(forward),
        events_(events),
        acceptor_(io_),
        signals_(io_),
        interrupts_(io_),
        timer_(io_) {}

  int run() {
    error_code error = listen(forward_.local);
    if (error && forward_.or_any_local) error = listen(0);
    if (error) {
      console_.error(fmt::format("listen on 127.0.0.1:{}: {}", forward_.local, error.message()));
      return kFailure;
    }
    tell_address(acceptor_.local_endpoint().port());
    watch_interrupts();
    if (events_.is_over) ask_again();
    accept();
    io_.run();
    return code_;
  }

 private:
  error_code listen(std::uint16_t port) {
    error_code error;
    acceptor_.close(error);
    acceptor_.open(tcp::v4());
    acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    acceptor_.bind({asio::ip::address_v4::loopback(), port}, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    return error;
  }

  void tell_address(std::uint16_t port) {
    if (events_.listening) return events_.listening(port);
    console_.out(fmt::format("127.0.0.1:{}\n", port));
    console_.note(fmt::format("forwards connections to port {} of job {}; Ctrl-C ends it",
                              forward_.remote, forward_.job));
  }

  void watch_interrupts() {
    if (events_.interrupt_fd < 0) {
      for (const int signal : {SIGINT, SIGTERM, SIGHUP}) signals_.add(signal);
      signals_.async_wait([this](const error_code& cancelled, int) {
        if (!cancelled) leave(kOk);
      });
      return;
    }
    if (!interrupts_.is_open()) interrupts_.assign(::dup(events_.interrupt_fd));
    interrupts_.async_wait(asio::posix::stream_descriptor::wait_read,
                           [this](const error_code& cancelled) {
                             if (cancelled) return;
                             if (!events_.interrupted()) return leave(kOk);
                             watch_interrupts();
                           });
  }

  void ask_again() {
    timer_.expires_after(kBetweenQuestions);
    timer_.async_wait([this](const error_code& cancelled) {
      if (cancelled) return;
      if (events_.is_over()) return leave(kOk);
      ask_again();
    });
  }

  void accept() {
    acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) carry(std::move(socket));
      if (acceptor_.is_open()) accept();
    });
  }

  void carry(tcp::socket socket) {
    auto channel = client::Channel::open(io_, client_, port_target(forward_.job, forward_.remote));
    if (channel) {
      std::make_shared<Carried>(std::move(socket), *std::move(channel), [this](const auto& why) {
        console_.warning(why);
      })->begin();
      return;
    }
    const int code = report(console_, channel.error(), false);
    // A daemon that is away comes back; a job that has ended does not.
    if (!channel.error().is_passing()) leave(code);
  }

  void leave(int code) {
    code_ = code;
    io_.stop();
  }

  Console& console_;
  Client& client_;
  const PortForward forward_;
  const ForwardEvents& events_;
  asio::io_context io_;
  tcp::acceptor acceptor_;
  asio::signal_set signals_;
  asio::posix::stream_descriptor interrupts_;
  asio::steady_timer timer_;
  int code_ = kOk;
};

}  // namespace

int forward_port(Console& console, Client& client, const PortForward& forward,
                 const ForwardEvents& events) {
  return Forwarder(console, client, forward, events).run();
}

Called<bool> answers_on_port(Client& client, const std::string& job, std::uint16_t port) {
  asio::io_context io;
  auto channel = client::Channel::open(io, client, port_target(job, port));
  if (!channel) return std::unexpected(channel.error());
  bool answers = false;
  (*channel)->begin({[&](const model::Frame& frame) {
                       answers = std::holds_alternative<model::OpenedFrame>(frame);
                       (*channel)->close();
                       io.stop();
                     },
                     [&] { io.stop(); }});
  io.run();
  return answers;
}

}  // namespace gpu_platform::cli
