#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/ledger_fixture.h"
#include "store/sqlite/repair.h"
#include "store/sqlite/sqlite_test_support.h"

namespace gpu_platform::store {
namespace {

// A small file system of its own, in a mount namespace that ends with the test program.
class FullDisk : public testing::Test {
 protected:
  void SetUp() override {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", mount_point_.path().c_str(), "tmpfs", 0, "size=16m,mode=700") != 0) {
      GTEST_SKIP() << "mounting a small tmpfs is not permitted here: " << std::strerror(errno);
    }
    is_mounted_ = true;
  }
  void TearDown() override {
    store_.reset();
    if (is_mounted_) ::umount2(mount_point_.path().c_str(), MNT_DETACH);
  }

  std::filesystem::path dir() const { return mount_point_.path() / "data"; }
  std::filesystem::path ballast() const { return dir() / "store.ballast"; }

  SqliteOptions options() const {
    return {.dir = dir(), .headroom = {.ballast = base::kMiB * 4, .low_water = base::kMiB * 2}};
  }
  void open() {
    auto opened = SqliteStore::open(options());
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
  }

  std::uint64_t free_bytes() const {
    struct statvfs status{};
    EXPECT_EQ(::statvfs(mount_point_.path().c_str(), &status), 0);
    return status.f_bavail * status.f_frsize;
  }
  // Another program takes all but `left` bytes.
  void fill_disk(std::uint64_t left) {
    const std::uint64_t free = free_bytes();
    if (free <= left) return;
    std::ofstream out(mount_point_.path() / "filler", std::ios::binary | std::ios::app);
    out << std::string(free - left, 'f');
  }
  void free_disk() { std::filesystem::remove(mount_point_.path() / "filler"); }

  // Event and ending of job `next_`.
  base::Status append_ending() {
    base::Status status =
        append_events(*store_, next_, next_, {JobBuilder(next_).label("model", "bert")});
    if (status) ++next_;
    return status;
  }

  TemporaryDirectory mount_point_;
  bool is_mounted_ = false;
  std::unique_ptr<SqliteStore> store_;
  std::uint64_t next_ = 1;
};

TEST_F(FullDisk, RefusesNewWorkWhileThereIsStillRoomForEndings) {
  open();
  EXPECT_EQ(store_->headroom(), Headroom::kAmple);
  EXPECT_EQ(std::filesystem::file_size(ballast()), 4u << 20);
  fill_disk((2 << 20) - 4096);
  EXPECT_EQ(store_->headroom(), Headroom::kReserved);
  EXPECT_TRUE(append_ending());
  free_disk();
  EXPECT_EQ(store_->headroom(), Headroom::kAmple);
}

TEST_F(FullDisk, EndingsAreRecordedInTheReserveWhenNothingIsLeft) {
  open();
  ASSERT_TRUE(append_ending());
  fill_disk(0);
  ASSERT_LT(free_bytes(), 4096u);

  // A megabyte of endings, and some to show that the log is reused.
  for (int i = 0; i < 1500; ++i) {
    const auto status = append_ending();
    ASSERT_TRUE(status) << "ending " << i << ": " << status.error().message;
  }

  EXPECT_EQ(store_->headroom(), Headroom::kReserved);
  EXPECT_FALSE(std::filesystem::exists(ballast()));
  EXPECT_EQ(replayed(*store_), bytes_of_events(1, next_ - 1));
  EXPECT_EQ(store_->list({.limit = 10'000})->size(), next_ - 1);

  free_disk();
  EXPECT_EQ(store_->headroom(), Headroom::kAmple) << "the reserve is made again";
  EXPECT_EQ(std::filesystem::file_size(ballast()), 4u << 20);
}

TEST_F(FullDisk, LinesOfTheLedgerGoWithTheirEndingsIntoTheReserve) {
  open();
  ASSERT_TRUE(append_ending());
  fill_disk(0);
  std::vector<model::LedgerLine> all;
  for (std::uint64_t seq = 2; seq <= 300; ++seq) {
    const auto lines = held_lines({.attempt = seq, .gpus = 2});
    const auto status = store_->append({.events = events_of(seq, seq), .ledger = lines});
    ASSERT_TRUE(status) << "event " << seq << ": " << status.error().message;
    all.insert(all.end(), lines.begin(), lines.end());
  }
  EXPECT_EQ(all_lines(*store_), all);
  store_.reset();
  open();
  EXPECT_EQ(all_lines(*store_), all);
}

TEST_F(FullDisk, AGapOfTheLedgerIsNotFilledFromTheReserve) {
  open();
  ASSERT_TRUE(append_ending());
  store_.reset();
  run_sql(dir(), std::string(kToVersion3));
  open();
  const LedgerGap gap = store_->ledger_gap();
  ASSERT_TRUE(gap.is_open());
  fill_disk((2 << 20) - 4096);
  const std::vector<LedgerBatch> batches = {{model::EventSeq(1), held_lines({})}};
  const auto status = store_->put_ledger(batches, model::EventSeq(1));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, base::ErrorCode::kResourceExhausted);
  EXPECT_EQ(store_->ledger_gap(), gap);
  EXPECT_TRUE(append_ending()) << "and the journal goes on";
  free_disk();
  EXPECT_TRUE(store_->put_ledger(batches, model::EventSeq(1)));
}

TEST_F(FullDisk, SnapshotsDoNotTakeTheReserve) {
  open();
  ASSERT_TRUE(append_ending());
  fill_disk(3 << 20);
  const auto status =
      store_->put_snapshot({model::EventSeq(1), std::string(std::size_t{4} << 20, 's')});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, base::ErrorCode::kResourceExhausted);
  EXPECT_TRUE(append_ending()) << "a refused snapshot is not a failure of the journal";
}

TEST_F(FullDisk, WhatWasAcknowledgedIsThereWhenEvenTheReserveIsUsedUp) {
  open();
  fill_disk(0);
  base::Status status = append_ending();
  ASSERT_TRUE(status) << status.error().message;
  fill_disk(0);
  while (status) status = append_ending();
  EXPECT_EQ(status.error().code, base::ErrorCode::kResourceExhausted) << status.error().message;
  EXPECT_FALSE(append_ending()) << "the journal is no longer used";
  store_.reset();

  free_disk();
  open();
  EXPECT_EQ(replayed(*store_), bytes_of_events(1, next_ - 1));
  EXPECT_TRUE(append_ending());
}

// So many that SQLite writes pages to the log, and fails, within a statement for several jobs.
TEST_F(FullDisk, NothingIsStoredOfManyEndingsThatDoNotFit) {
  open();
  ASSERT_TRUE(append_ending());
  std::vector<model::Job> jobs;
  const std::string text(3'000, 'x');
  for (std::uint64_t id = 2; id <= 8'000; ++id) jobs.push_back(JobBuilder(id).label("text", text));
  const base::Status status = append_events(*store_, next_, next_, jobs);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, base::ErrorCode::kResourceExhausted) << status.error().message;
  store_.reset();

  open();
  EXPECT_EQ(replayed(*store_), bytes_of_events(1, 1));
  EXPECT_EQ(store_->list({.limit = 10'000})->size(), 1u);
  EXPECT_TRUE(append_ending());
}

TEST_F(FullDisk, AStoreOpensOnAFullDisk) {
  open();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(append_ending());
  store_.reset();
  fill_disk(0);
  open();
  ASSERT_NE(store_, nullptr);
  EXPECT_EQ(store_->headroom(), Headroom::kReserved);
  EXPECT_EQ(replayed(*store_), bytes_of_events(1, 20));
  EXPECT_TRUE(append_ending());
}

}  // namespace
}  // namespace gpu_platform::store
