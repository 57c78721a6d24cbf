#include "api/rest/channel_bridge.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "api/rest/server_fixture_test.h"

namespace gpu_platform::api {
namespace {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;

// The inside of a job: gives one end of each channel away and keeps the other.
class FakeChannels final : public ChannelSource {
 public:
  ~FakeChannels() override {
    if (ours_ >= 0) ::close(ours_);
  }
  void open(model::ChannelOrder order, Opened opened) override {
    std::unique_lock lock(mutex_);
    order_ = std::move(order);
    if (refusal_) {
      lock.unlock();
      return opened(std::unexpected(*refusal_));
    }
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours_ = ends[0];
    lock.unlock();
    opened(ChannelSocket(ends[1]));
  }
  void refuse(base::Error error) { refusal_ = std::move(error); }

  model::ChannelOrder order() const {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  void send(const model::Frame& frame) const {
    const std::string bytes = model::encode_frame(frame);
    ASSERT_EQ(::send(ours_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // One packet; empty at the end.
  std::string receive() const {
    std::string bytes(model::kMaxFrame + 1, '\0');
    const ssize_t got = ::recv(ours_, bytes.data(), bytes.size(), 0);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }
  void hang_up() { ::close(std::exchange(ours_, -1)); }

 private:
  mutable std::mutex mutex_;
  model::ChannelOrder order_;
  std::optional<base::Error> refusal_;
  int ours_ = -1;
};

// Takes every credential for one user's, until it is told otherwise.
class OneUser final : public Authenticator {
 public:
  OneUser(std::string user, std::uint32_t uid) : user_(std::move(user)), uid_(uid) {}
  void authenticate(Credential, Done done) const override {
    Peer peer;
    peer.caller.user = user_;
    peer.caller.uid = uid_;
    done(std::move(peer));
  }
  base::Status check_still_holds(const Peer&) const override {
    if (!is_revoked) return {};
    return base::fail(base::ErrorCode::kUnauthenticated, "the token is not valid");
  }

  std::atomic<bool> is_revoked = false;

 private:
  std::string user_;
  std::uint32_t uid_;
};

class ChannelRoutes : public ServerTest {
 protected:
  void SetUp() override {
    options_.authenticator = &authenticator_;
    options_.limits.admit_every = std::chrono::milliseconds(20);
    core_.channels = &channels_;
    job_ = core_.add_job(user_, uid_);
    core_.start_job(job_);
    start();
  }
  std::string exec_path(const std::string& query = "command=sh") const {
    return "/v1/jobs/" + std::to_string(job_.value) + "/exec?" + query;
  }

  // A client that has been let in.
  struct Client {
    asio::io_context io;
    websocket::stream<asio::local::stream_protocol::socket> stream{io};
    error_code error;

    void open(const std::string& path, const std::string& target) {
      boost::beast::get_lowest_layer(stream).connect(asio::local::stream_protocol::endpoint(path));
      shake_hands(target);
    }
    void adopt(int descriptor, const std::string& target) {
      boost::beast::get_lowest_layer(stream).assign(asio::local::stream_protocol(), descriptor);
      shake_hands(target);
    }
    void shake_hands(const std::string& target) {
      stream.binary(true);
      stream.handshake("localhost", target, error);
    }
    void send(const model::Frame& frame) {
      stream.write(asio::buffer(model::encode_frame(frame)), error);
    }
    std::string receive() {
      boost::beast::flat_buffer buffer;
      stream.read(buffer, error);
      return {static_cast<const char*>(buffer.data().data()), buffer.size()};
    }
  };

  OneUser authenticator_{user_, uid_};
  FakeChannels channels_;
  model::JobId job_;
};

TEST_F(ChannelRoutes, FramesGoBothWaysUnchanged) {
  Client client;
  client.open(options_.socket_path, exec_path("command=sh&command=-c&command=a%20b"));
  ASSERT_FALSE(client.error) << client.error.message();
  const std::string most(model::kMaxFrameBytes, 'x');
  client.send(model::InputFrame{most});
  EXPECT_TRUE(channels_.receive() == model::encode_frame(model::InputFrame{most}));
  channels_.send(model::OutputFrame{most});
  EXPECT_TRUE(client.receive() == model::encode_frame(model::OutputFrame{most}));
  const model::ChannelOrder order = channels_.order();
  EXPECT_EQ(order.attempt, (model::AttemptId{job_, 1}));
  EXPECT_EQ(order.command, (std::vector<std::string>{"sh", "-c", "a b"}));
  EXPECT_FALSE(order.terminal.has_value());
}

TEST_F(ChannelRoutes, WhatTheJobSaidLastArrivesBeforeTheEnd) {
  Client client;
  client.open(options_.socket_path, exec_path("command=sh&terminal=true&columns=132&rows=50"));
  ASSERT_FALSE(client.error) << client.error.message();
  EXPECT_EQ(channels_.order().terminal, (model::TerminalSize{132, 50}));
  const model::EndFrame end{model::ChannelEnd::kExited, 3, "over"};
  channels_.send(end);
  channels_.hang_up();
  EXPECT_EQ(client.receive(), model::encode_frame(end));
  client.receive();
  EXPECT_EQ(client.error, websocket::error::closed);
  EXPECT_EQ(client.stream.reason().code, websocket::close_code::normal);
  EXPECT_TRUE(all_connections_gone());
}

TEST_F(ChannelRoutes, ClientThatGoesHangsUp) {
  {
    Client client;
    client.open(options_.socket_path, exec_path());
    ASSERT_FALSE(client.error) << client.error.message();
  }
  EXPECT_EQ(channels_.receive(), "");
  EXPECT_TRUE(all_connections_gone());
}

TEST_F(ChannelRoutes, MessageLongerThanAFrameHangsUp) {
  Client client;
  client.open(options_.socket_path, exec_path());
  ASSERT_FALSE(client.error) << client.error.message();
  client.stream.auto_fragment(false);
  client.stream.write(asio::buffer(std::string(model::kMaxFrame + 1, '\x01')), client.error);
  EXPECT_EQ(channels_.receive(), "");
}

TEST_F(ChannelRoutes, DaemonThatStopsSaysGoodbyeAndHangsUp) {
  Client client;
  client.open(options_.socket_path, exec_path());
  ASSERT_FALSE(client.error) << client.error.message();
  std::thread stopper([&] { server_->stop(); });
  client.receive();
  EXPECT_EQ(client.stream.reason().code, websocket::close_code::going_away);
  EXPECT_EQ(channels_.receive(), "");
  stopper.join();
}

TEST_F(ChannelRoutes, CredentialThatNoLongerHoldsHangsUpASilentChannel) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  server_->adopt(ends[1], {Credential::Kind::kBearer, "secret", "192.0.2.7"});
  Client client;
  client.adopt(ends[0], exec_path());
  ASSERT_FALSE(client.error) << client.error.message();
  const model::Frame frame = model::InputFrame{"still here"};
  client.send(frame);
  EXPECT_EQ(channels_.receive(), model::encode_frame(frame));
  authenticator_.is_revoked = true;
  client.receive();
  EXPECT_EQ(client.error, websocket::error::closed);
  EXPECT_EQ(client.stream.reason().code, websocket::close_code::policy_error);
  EXPECT_EQ(channels_.receive(), "");
  EXPECT_TRUE(all_connections_gone());
}

TEST_F(ChannelRoutes, RefusalsAreOrdinaryAnswers) {
  EXPECT_EQ(ask("GET", exec_path()).status, 426);
  EXPECT_EQ(ask("GET", exec_path("terminal=true")).status, 400) << "no command";
  EXPECT_EQ(ask("GET", "/v1/jobs/" + std::to_string(job_.value) + "/ports/0").status, 400);
  EXPECT_EQ(ask("GET", "/v1/jobs/99/exec?command=sh").status, 404);
  EXPECT_EQ(ask("POST", exec_path()).status, 405);

  channels_.refuse({base::ErrorCode::kUnavailable, "not just now", {}});
  Client client;
  client.open(options_.socket_path, exec_path());
  EXPECT_EQ(client.error, websocket::error::upgrade_declined);

  core_.end_job(job_, 0);
  EXPECT_EQ(ask("GET", exec_path()).status, 409);
}

TEST_F(ChannelRoutes, JobOfAnotherUserIsNotFound) {
  if (uid_ == 0) GTEST_SKIP() << "root may enter every job";
  const model::JobId other = core_.add_job("other", uid_ + 1);
  core_.start_job(other);
  EXPECT_EQ(ask("GET", "/v1/jobs/" + std::to_string(other.value) + "/exec?command=sh").status, 404);
}

}  // namespace
}  // namespace gpu_platform::api
