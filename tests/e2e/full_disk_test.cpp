#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <fstream>

#include "harness.h"

// The data directory on a small file system of its own that is filled to the last byte.

namespace gpu_platform::e2e {
namespace {

class FullDisk : public testing::Test {
 protected:
  void SetUp() override {
    mount_point = place.path() + "/disk";
    mkdir(mount_point.c_str(), 0755);
    if (mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=160m") != 0) {
      GTEST_SKIP() << "needs the right to mount a tmpfs";
    }
    mounted = true;
  }
  void TearDown() override {
    daemon.reset();
    if (mounted) umount2(mount_point.c_str(), MNT_DETACH);
  }
  void fill() const {
    std::ofstream filler(mount_point + "/filler", std::ios::binary);
    const std::string block(1 << 16, 'x');
    while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void free_again() const { EXPECT_EQ(remove((mount_point + "/filler").c_str()), 0); }

  TemporaryDirectory place;
  std::string mount_point;
  bool mounted = false;
  std::unique_ptr<Daemon> daemon;
};

TEST_F(FullDisk, RefusesNewWorkRecordsEndingsAndRecoversWhenThereIsRoom) {
  daemon = std::make_unique<Daemon>(DaemonOptions{.data_dir = mount_point + "/data"});
  ASSERT_TRUE(daemon->start()) << daemon->log();
  const std::string flag = place.path() + "/flag";
  const std::string wait_for_flag = "until [ -e " + flag + " ]; do sleep 0.2; done; exit 5";
  std::vector<std::string> ids;
  for (int i = 0; i < 8; ++i) {
    const Finished submitted = daemon->cli(
        {"submit", "--gpus", "1", "--output", "/dev/null", "--", "/bin/sh", "-c", wait_for_flag});
    ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
    ids.push_back(submitted.out.substr(0, submitted.out.find('\n')));
  }
  ASSERT_TRUE(eventually([&] { return daemon->json({"status"})["running_jobs"] == 8; }));
  fill();

  const Finished refused = daemon->cli({"submit", "--gpus", "1", "--", "/bin/true"});
  EXPECT_EQ(refused.exit_code, 4) << refused.err;
  EXPECT_NE(refused.err.find("full"), std::string::npos) << refused.err;
  EXPECT_EQ(daemon->cli({"status"}).exit_code, 0);

  std::ofstream(flag).flush();
  for (const std::string& id : ids) {
    EXPECT_TRUE(eventually([&] { return daemon->job(id)["state"] == "FAILED"; })) << daemon->log();
    EXPECT_EQ(daemon->job(id)["exit_code"], 5);
  }
  daemon->kill_now();
  ASSERT_TRUE(daemon->start()) << daemon->log();
  for (const std::string& id : ids) EXPECT_EQ(daemon->job(id)["exit_code"], 5);

  free_again();
  EXPECT_TRUE(eventually([&] {
    return daemon->cli({"run", "--gpus", "1", "--", "/bin/true"}).exit_code == 0;
  })) << daemon->log();
}

}  // namespace
}  // namespace gpu_platform::e2e
