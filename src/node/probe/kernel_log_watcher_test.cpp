#include "node/probe/kernel_log_watcher.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace gpu_platform::node {
namespace {

using Progress = KernelLogReader::Progress;

// A pipe in the place of the log: what is written to it can be read at once.
class KernelLog : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/kernel_log_test.XXXXXX";
    folder_ = mkdtemp(folder);
    const std::string path = folder_ + "/kmsg";
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    auto log = KernelLogReader::open(path);
    ASSERT_TRUE(log) << log.error().message;
    log_ = std::make_unique<KernelLogReader>(*std::move(log));
    writer_ = os::Descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_TRUE(writer_.is_open());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& text) {
    ASSERT_EQ(::write(writer_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void write_xid(std::uint32_t xid, int priority = 3) {
    write(
        fmt::format("{},{},1,-;NVRM: Xid (PCI:0000:65:00): {}, pid=1, name=a, words\n"
                    " SUBSYSTEM=pci\n DEVICE=+pci:0000:65:00.0\n",
                    priority, sequence_++, xid));
  }
  std::vector<std::uint32_t> codes() const {
    std::vector<std::uint32_t> codes;
    for (const hardware::KernelLine& line : log_->oldest(1000)) codes.push_back(line.code);
    return codes;
  }

  std::string folder_;
  std::unique_ptr<KernelLogReader> log_;
  os::Descriptor writer_;
  std::uint64_t sequence_ = 100;
};

TEST_F(KernelLog, GivesTheLinesThatTellOfGpus) {
  EXPECT_EQ(log_->read(), Progress::kUpToDate);
  EXPECT_FALSE(log_->has_news());
  write_xid(79);
  write(fmt::format("6,{},1,-;usb 1-1: new device\n", sequence_++));
  write_xid(48);
  EXPECT_EQ(log_->read(), Progress::kUpToDate);
  EXPECT_EQ(codes(), (std::vector{79U, 48U}));
  EXPECT_EQ(log_->lost(), 0U);
  log_->remove(1);
  EXPECT_EQ(codes(), std::vector{48U});
  log_->remove(9);
  EXPECT_FALSE(log_->has_news());
}

TEST_F(KernelLog, BelievesOnlyTheKernel) {
  write_xid(79, 12);
  log_->read();
  EXPECT_FALSE(log_->has_news());
}

TEST_F(KernelLog, CountsTheRecordsThatWereOverwritten) {
  write_xid(79);
  sequence_ += 40;
  write(fmt::format("6,{},1,-;usb 1-1: new device\n", sequence_++));
  log_->read();
  EXPECT_EQ(log_->lost(), 40U);
  log_->remove(1);
  EXPECT_EQ(log_->lost(), 0U);
  write_xid(48);
  log_->read();
  EXPECT_EQ(log_->lost(), 0U);
}

TEST_F(KernelLog, JoinsAStorm) {
  for (int i = 0; i < 300; ++i) {
    write_xid(45);
    log_->read();
  }
  const auto lines = log_->oldest(10);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].count, 300U);
}

TEST_F(KernelLog, DropsTheOldestOfTooManyAndCountsThem) {
  for (std::uint32_t i = 0; i < KernelLogReader::kMaxKept + 3; ++i) {
    write_xid(1000 + i);
    log_->read();
  }
  EXPECT_EQ(log_->lost(), 3U);
  EXPECT_EQ(codes().front(), 1003U);
}

TEST_F(KernelLog, EndsWithItsWriter) {
  write_xid(79);
  writer_.reset();
  EXPECT_EQ(log_->read(), Progress::kEnded);
  EXPECT_EQ(codes(), std::vector{79U});
}

TEST(KernelLogFile, IsReadFromItsEnd) {
  char folder[] = "/tmp/kernel_log_test.XXXXXX";
  const std::string path = std::string(mkdtemp(folder)) + "/kmsg";
  const os::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const auto write = [&](std::string_view text) {
    ASSERT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  write("3,1,1,-;NVRM: Xid (PCI:0000:65:00): 79, old\n");
  auto log = KernelLogReader::open(path);
  ASSERT_TRUE(log);
  write("3,2,1,-;NVRM: Xid (PCI:0000:65:00): 48, new\n");
  log->read();
  const auto lines = log->oldest(10);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].code, 48U);
  std::filesystem::remove_all(folder);
}

TEST(KernelLogFile, ThatMayNotBeReadIsAnError) {
  EXPECT_FALSE(KernelLogReader::open("/nonexistent/kmsg"));
}

}  // namespace
}  // namespace gpu_platform::node
