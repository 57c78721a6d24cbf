#include "node/limits/job_limits.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/small_file.h"

namespace gpu_platform::node {
namespace {

// Plain files in place of a cgroup's: what is written into them is what the kernel would be told.
class JobLimitsInACgroup : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/job_limits_test.XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    for (const char* file : {"memory.max", "memory.swap.max", "memory.oom.group", "pids.max",
                             "cpu.weight", "io.weight", "io.bfq.weight", "memory.events",
                             "memory.peak", "cpuset.cpus", "cpuset.cpus.effective"}) {
      std::ofstream(root_ + "/" + file).flush();
    }
    fd_ = open(name, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    for (LimitPlace& place : unified_.places) place.kind = LimitPlace::Kind::kUnified;
  }
  void TearDown() override {
    close(fd_);
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  std::string text(const char* file) const { return os::read_small_file(fd_, file); }
  void write(const char* file, std::string_view text) const {
    std::ofstream(root_ + "/" + file) << text;
  }

  std::string root_;
  int fd_ = -1;
  LimitPlaces unified_;
  JobLimits limits_;
};

TEST_F(JobLimitsInACgroup, AreWhatTheJobAskedFor) {
  unified_.has_io_weight = true;
  EXPECT_EQ(limits_.apply(unified_, "1-1", fd_, {1 << 30, 100, 4, {}}), "");
  EXPECT_EQ(text("memory.max"), "1073741824");
  EXPECT_EQ(text("memory.swap.max"), "0");
  EXPECT_EQ(text("memory.oom.group"), "1");
  EXPECT_EQ(text("pids.max"), "100");
  EXPECT_EQ(text("cpu.weight"), "40");
  EXPECT_EQ(text("io.weight"), "40");
  EXPECT_EQ(text("io.bfq.weight"), "40");
  EXPECT_TRUE(limits_.entrances().empty());
}

TEST_F(JobLimitsInACgroup, WeighDiskTimeWithinWhatEachReaderTakes) {
  unified_.has_io_weight = true;
  EXPECT_EQ(limits_.apply(unified_, "1-1", fd_, {0, 0, 400, {}}), "");
  EXPECT_EQ(text("io.weight"), "4000");
  EXPECT_EQ(text("io.bfq.weight"), "1000");
}

TEST_F(JobLimitsInACgroup, AreNotTouchedWhereNothingWasAskedFor) {
  EXPECT_EQ(limits_.apply(unified_, "1-1", fd_, {}), "");
  for (const char* file : {"memory.max", "memory.swap.max", "pids.max", "cpu.weight"}) {
    EXPECT_EQ(text(file), "") << file;
  }
}

TEST_F(JobLimitsInACgroup, WeightStaysInTheKernelsRange) {
  EXPECT_EQ(limits_.apply(unified_, "1-1", fd_, {0, 0, 5000, {}}), "");
  EXPECT_EQ(text("cpu.weight"), "10000");
}

TEST_F(JobLimitsInACgroup, CoresAreThoseAskedForThatAreOurs) {
  LimitValues values;
  values.cores = *parse_number_list("2-5,9,64-70");
  write("cpuset.cpus.effective", "0-3,9,66\n");
  EXPECT_EQ(limits_.apply(unified_, "1-1", fd_, values), "");
  EXPECT_EQ(text("cpuset.cpus"), "2-3,9,66");
}

TEST_F(JobLimitsInACgroup, CoresThatAllBelongToOthersAreLeft) {
  LimitValues values;
  values.cores = *parse_number_list("4-5");
  write("cpuset.cpus.effective", "0-3\n");
  EXPECT_EQ(limits_.apply(unified_, "1-1", fd_, values), "");
  EXPECT_EQ(text("cpuset.cpus"), "");
}

TEST_F(JobLimitsInACgroup, OneThatCannotBeSetIsAnError) {
  std::filesystem::remove(root_ + "/pids.max");
  EXPECT_NE(limits_.apply(unified_, "1-1", fd_, {0, 100, 0, {}}), "");
}

TEST_F(JobLimitsInACgroup, NothingIsSetOnAHostWithoutControllers) {
  EXPECT_EQ(limits_.apply({}, "1-1", fd_, {1 << 30, 100, 4, {}}), "");
  EXPECT_EQ(text("memory.max"), "");
  write("memory.events", "oom_kill 1");
  EXPECT_FALSE(limits_.ran_out_of_memory());
}

TEST_F(JobLimitsInACgroup, OnlyAKillIsWantOfMemory) {
  ASSERT_EQ(limits_.apply(unified_, "1-1", fd_, {1 << 30, 0, 0, {}}), "");
  write("memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\noom_group_kill 0\n");
  EXPECT_FALSE(limits_.ran_out_of_memory());
  write("memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\noom_group_kill 1\n");
  EXPECT_TRUE(limits_.ran_out_of_memory());
  write("memory.peak", "12345\n");
  EXPECT_EQ(limits_.peak_memory_bytes(), 12345u);
}

TEST_F(JobLimitsInACgroup, GroupApartIsMadeAndRemoved) {
  LimitPlaces apart;
  apart.of(Resource::kProcesses) = {LimitPlace::Kind::kApart, root_};
  // A plain folder gets no files from a kernel, so the limit cannot be written.
  EXPECT_NE(limits_.apply(apart, "1-1", fd_, {0, 100, 0, {}}), "");
  EXPECT_TRUE(std::filesystem::is_directory(root_ + "/1-1"));
  remove_limit_groups(apart, "1-1");
  EXPECT_FALSE(std::filesystem::exists(root_ + "/1-1"));
}

}  // namespace
}  // namespace gpu_platform::node
