#include "bin/daemon_signals.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

namespace gpu_platform::bin {
namespace {

// Each test has the signals of its process for itself: they are sent to the thread that runs it,
// which blocks them, and read before it ends.
class DaemonSignalsTest : public ::testing::Test {
 protected:
  DaemonSignalsTest() { pthread_sigmask(SIG_SETMASK, nullptr, &former_); }
  ~DaemonSignalsTest() override {
    pthread_sigmask(SIG_SETMASK, &former_, nullptr);
    signal(SIGPIPE, SIG_DFL);
  }

 private:
  sigset_t former_{};
};

TEST_F(DaemonSignalsTest, ASignalToEndIsPendingUntilItIsTaken) {
  const DaemonSignals signals;
  EXPECT_FALSE(DaemonSignals::is_told_to_end());
  raise(SIGTERM);
  EXPECT_TRUE(DaemonSignals::is_told_to_end());
  EXPECT_TRUE(DaemonSignals::is_told_to_end()) << "asking takes nothing";
  EXPECT_FALSE(signals.next().has_value());
  EXPECT_FALSE(DaemonSignals::is_told_to_end());
}

TEST_F(DaemonSignalsTest, ASignalToReloadNamesItsSender) {
  const DaemonSignals signals;
  raise(SIGHUP);
  EXPECT_FALSE(DaemonSignals::is_told_to_end());
  const auto sender = signals.next();
  ASSERT_TRUE(sender);
  EXPECT_EQ(sender->uid, getuid());
  EXPECT_EQ(sender->pid, getpid());
}

TEST_F(DaemonSignalsTest, APauseLastsItsTimeThoughTheConfigurationChanges) {
  const DaemonSignals signals;
  raise(SIGHUP);
  EXPECT_TRUE(signals.pause(base::milliseconds(20)));
}

TEST_F(DaemonSignalsTest, APauseEndsWithASignalToEnd) {
  const DaemonSignals signals;
  raise(SIGINT);
  EXPECT_FALSE(signals.pause(base::minutes(10)));
}

}  // namespace
}  // namespace gpu_platform::bin
