#include "listener/link_upstream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

#include "os/descriptor.h"
#include "os/packet_socket.h"

namespace gpu_platform::listener {
namespace {

class LinkUpstreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    ours_ = os::Descriptor(pair[0]);
    daemons_ = os::Descriptor(pair[1]);
    ::fcntl(ours_.get(), F_SETFL, O_NONBLOCK);
    while (os::send_packet(ours_.get(), "one that waits")) ++waiting_;
    ASSERT_EQ(errno, EAGAIN);
  }

  os::Descriptor ours_;
  os::Descriptor daemons_;
  int waiting_ = 0;
};

const Credential kShown{Credential::Kind::kBearer, "secret", "192.0.2.7"};

TEST_F(LinkUpstreamTest, DaemonThatTakesNothingIsNotWaitedForLong) {
  LinkUpstream upstream(ours_.get());
  const auto opened = upstream.open(kShown);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, base::ErrorCode::kUnavailable);
}

// More at once than the link holds, however quickly the daemon takes them.
TEST_F(LinkUpstreamTest, BurstOfClientsWaitsForTheDaemon) {
  constexpr int kBurst = 3000;
  std::thread daemon([this] {
    std::array<char, 4096> buffer;
    for (int i = 0; i < waiting_ + kBurst; ++i) {
      const auto packet = os::receive_packet(daemons_.get(), buffer.data(), buffer.size());
      if (packet.fd >= 0) ::close(packet.fd);
    }
  });
  LinkUpstream upstream(ours_.get());
  int refused = 0;
  for (int i = 0; i < kBurst; ++i) {
    const auto opened = upstream.open(kShown);
    opened ? void(::close(*opened)) : void(++refused);
  }
  EXPECT_EQ(refused, 0);
  if (refused > 0) ::shutdown(ours_.get(), SHUT_RDWR);
  daemon.join();
}

}  // namespace
}  // namespace gpu_platform::listener
