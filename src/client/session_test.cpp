#include "client/session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace gpu_platform::client {
namespace {

// Standard error is a terminal of 20 columns.
class OnATerminal : public ::testing::Test {
 protected:
  void SetUp() override {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0) GTEST_SKIP();
    around_.err_fd = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    ASSERT_GE(around_.err_fd, 0);
    const winsize size{.ws_row = 10, .ws_col = 20, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(::ioctl(master_, TIOCSWINSZ, &size), 0);
  }
  void TearDown() override {
    if (around_.err_fd > 2) ::close(around_.err_fd);
    if (master_ >= 0) ::close(master_);
  }
  std::string shown() const {
    std::string text(4096, 0);
    const ssize_t got = ::read(master_, text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

  int master_ = -1;
  ProcessEnvironment around_;
};

TEST_F(OnATerminal, ProgressIsOneLineThatWhatIsSaidNextReplaces) {
  Console console(around_);
  EXPECT_TRUE(console.shows_progress());
  console.progress("43 % of a very long image");
  EXPECT_EQ(shown(), "\r\x1b[K43 % of a very long") << "no line breaks at the end of the terminal";
  console.note("done");
  console.progress({});
  EXPECT_EQ(shown(), "\r\x1b[Kgpu-platform: done\r\n");
}

TEST(ProgressElsewhere, IsNotShown) {
  ProcessEnvironment around;
  around.err_fd = ::open("/dev/null", O_WRONLY);
  Console console(around);
  EXPECT_FALSE(console.shows_progress());
  ::close(around.err_fd);
}

}  // namespace
}  // namespace gpu_platform::client
