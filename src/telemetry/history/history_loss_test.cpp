#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "os/testing/eventually.h"
#include "telemetry/history/check_history.h"
#include "telemetry/history/history_file.h"
#include "telemetry/history/history_fixture.h"

// What a killed process, damage and a full disk cost: a part of the history and nothing else.

namespace gpu_platform::telemetry {
namespace {

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class HistoryLoss : public HistoryTest {
 protected:
  // A child that takes a minute of samples, writes them, and tells how many minutes are written,
  // until it is killed. Returns how many it told of.
  int run_and_kill(int minutes_told) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      open();
      for (int minute = 0;; ++minute) {
        feed(kNoon + base::minutes(minute), 60);
        set_now(kNoon + base::minutes(minute + 1));
        file().flush();
        const int written = minute + 1;
        if (::write(ends[1], &written, sizeof written) != sizeof written) ::_exit(1);
      }
    }
    ::close(ends[1]);
    int told = 0;
    int number = 0;
    while (told < minutes_told && ::read(ends[0], &number, sizeof number) == sizeof number) {
      told = number;
    }
    ::kill(child, SIGKILL);
    while (::read(ends[0], &number, sizeof number) == sizeof number) told = number;
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
    return told;
  }
};

TEST_F(HistoryLoss, AKilledProcessLosesTheLastMinuteAtMost) {
  base::Prng prng(11);
  for (int round = 0; round < 6; ++round) {
    std::filesystem::remove(path());
    std::filesystem::remove(path().string() + "-wal");
    std::filesystem::remove(path().string() + "-shm");
    const int told = run_and_kill(1 + static_cast<int>(prng.below(150)));
    set_now(kNoon + base::minutes(told + 1));
    open();
    ASSERT_GT(told, 0);
    const base::Instant end = kNoon + base::minutes(told);
    const std::vector<Point> samples = ask_one(power(), kNoon, end).points;
    ASSERT_EQ(samples.size(), static_cast<std::size_t>(60 * told)) << "round " << round;
    EXPECT_EQ(samples.back().sum, watts(0, 60 * told - 1));
    EXPECT_EQ(ask_one(energy(), kNoon, end, base::minutes(1)).whole().sum, 5 * (60 * told - 1));
    file().flush();
    EXPECT_EQ(ask_one(power(), kNoon, end, base::minutes(1)).whole().count,
              static_cast<std::uint32_t>(60 * told));
    EXPECT_EQ(file().coverage().problem, "");
    EXPECT_FALSE(std::filesystem::exists(path().string() + ".damaged-1"));
    close();
  }
}

TEST_F(HistoryLoss, AFileThatIsNoneIsPutAsideAndANewOneBegun) {
  write_bytes(path(), "this is no database, though it is long enough to be looked at as one. " +
                          std::string(5'000, 'x'));
  open();
  EXPECT_TRUE(std::filesystem::exists(path().string() + ".damaged-1"));
  EXPECT_TRUE(has_line("history.db.damaged-1")) << testing::PrintToString(lines());
  feed(kNoon, 10);
  file().flush();
  EXPECT_EQ(ask_one(power(), kNoon, kNoon + base::seconds(10)).points.size(), 10u);
}

TEST_F(HistoryLoss, ACheckTellsASoundFileFromADamagedOne) {
  EXPECT_FALSE(check_history(path())) << "there is none";
  open();
  feed(kNoon, 10, 2);
  file().put("rule/hot", "since noon");
  close();
  const auto sound = check_history(path());
  ASSERT_TRUE(sound);
  EXPECT_TRUE(sound->is_sound()) << sound->problem;
  EXPECT_EQ(sound->blocks, static_cast<std::uint64_t>(count("blocks")));
  EXPECT_EQ(sound->notes, 1u);
  EXPECT_EQ(sound->bytes, std::filesystem::file_size(path()));
  {
    auto database = store::Database::open(path().string(), store::Database::Mode::kReadWrite);
    ASSERT_TRUE(database && database->execute("UPDATE blocks SET bytes = x'00' WHERE id = "
                                              "(SELECT MIN(id) FROM blocks)"));
  }
  const auto one_less = check_history(path());
  ASSERT_TRUE(one_less);
  EXPECT_EQ(one_less->problem, "");
  EXPECT_EQ(one_less->damaged_blocks, 1u);
  EXPECT_EQ(one_less->blocks, sound->blocks - 1);
  write_bytes(path(), std::string(10'000, 'x'));
  const auto damaged = check_history(path());
  ASSERT_TRUE(damaged);
  EXPECT_NE(damaged->problem, "");
  EXPECT_EQ(read_bytes(path()), std::string(10'000, 'x')) << "a check changes nothing";
}

TEST_F(HistoryLoss, ACheckOfAFolderInItsPlaceIsAProblem) {
  std::filesystem::create_directory(path());
  const auto check = check_history(path());
  ASSERT_TRUE(check);
  EXPECT_FALSE(check->is_sound());
}

TEST_F(HistoryLoss, AFileOfALaterVersionIsPutAside) {
  open();
  feed(kNoon, 10);
  close();
  {
    auto database = store::Database::open(path().string(), store::Database::Mode::kReadWrite);
    ASSERT_TRUE(database && database->execute("PRAGMA user_version = 99"));
  }
  open();
  EXPECT_TRUE(has_line("it has version 99")) << testing::PrintToString(lines());
  EXPECT_TRUE(ask_one(power(), kNoon, kNoon + base::seconds(10)).points.empty());
  auto aside =
      store::Database::open(path().string() + ".damaged-1", store::Database::Mode::kReadWrite);
  ASSERT_TRUE(aside);
  EXPECT_EQ(aside->query_integer("SELECT COUNT(*) FROM blocks").value_or(0), 1);
}

// Whatever is damaged, the history goes on: it keeps what is new, and answers.
TEST_F(HistoryLoss, DamagedBytesCostHistoryAndNothingElse) {
  open();
  for (int hour = 0; hour < 4; ++hour) {
    feed(kNoon + base::hours(hour), 1'200, 2);
    set_now(kNoon + base::hours(hour) + base::minutes(30));
    file().flush();
  }
  file().put("note", "kept");
  close();
  const std::string whole = read_bytes(path());
  ASSERT_GT(whole.size(), 20'000u);
  base::Prng prng(5);
  for (int round = 0; round < 40; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 64; ++i) {
      damaged[prng.below(damaged.size())] = static_cast<char>(prng.next());
    }
    if (round % 8 == 7) damaged.resize(prng.below(damaged.size()));
    for (const auto& entry : std::filesystem::directory_iterator(folder())) {
      std::filesystem::remove(entry.path());
    }
    write_bytes(path(), damaged);
    set_now(kNoon + base::hours(5));
    open();
    const auto old = file().query({.subjects = {gpu(0)},
                                   .metrics = {power()},
                                   .from = kNoon,
                                   .to = kNoon + base::hours(4),
                                   .step = base::minutes(1)});
    EXPECT_TRUE(old || old.error().code == base::ErrorCode::kUnavailable) << round;
    file().get("note");
    file().all("");
    feed(now(), 60);
    file().flush();
    set_now(now() + base::minutes(70));
    file().flush();
    // What was damaged has been met by now. The file, or the one that took its place, goes on.
    file().flush();
    const base::Instant later = now();
    feed(later, 60);
    file().flush();
    file().flush();
    const auto answer = file().query({.subjects = {gpu(0)},
                                      .metrics = {power()},
                                      .from = later,
                                      .to = later + base::minutes(1)});
    ASSERT_TRUE(answer || answer.error().code == base::ErrorCode::kUnavailable) << round;
    if (!answer) {
      // A reader was the first to meet it.
      file().flush();
      feed(later, 60);
      file().flush();
      EXPECT_EQ(ask_one(power(), later, later + base::minutes(1)).points.size(), 60u) << round;
    }
    close();
  }
}

TEST_F(HistoryLoss, ADamagedBlockIsAGap) {
  open();
  feed(kNoon, 60);
  file().flush();
  feed(kNoon + base::minutes(1), 60);
  file().flush();
  close();
  {
    auto database = store::Database::open(path().string(), store::Database::Mode::kReadWrite);
    ASSERT_TRUE(database &&
                database->execute("UPDATE blocks SET bytes = x'0102030405' WHERE id = 1"));
  }
  open();
  EXPECT_EQ(ask_one(power(), kNoon, kNoon + base::minutes(2)).points.size(), 60u);
  set_now(kNoon + base::hours(2));
  file().flush();
  EXPECT_TRUE(has_line("there are gaps"));
  EXPECT_EQ(ask_one(power(), kNoon, kNoon + base::minutes(2), base::minutes(1)).whole().count, 60u);
  EXPECT_FALSE(std::filesystem::exists(path().string() + ".damaged-1"));
}

TEST_F(HistoryLoss, AFolderThatIsNotThereIsTriedAgain) {
  HistoryFile::Options elsewhere = options();
  elsewhere.path = folder() / "later" / "history.db";
  const auto history = HistoryFile::open(elsewhere);
  EXPECT_NE(history->coverage().problem, "");
  EXPECT_TRUE(has_line("cannot be written"));
  history->take(reading(kNoon));
  history->put("name", "bytes");
  EXPECT_EQ(history->get("name"), "bytes");
  history->flush();
  std::filesystem::create_directory(folder() / "later");
  history->flush();
  EXPECT_EQ(history->coverage().problem, "");
  EXPECT_TRUE(has_line("can be written again"));
  const auto series = history->query(
      {.subjects = {gpu(0)}, .metrics = {power()}, .from = kNoon, .to = kNoon + base::hours(1)});
  ASSERT_TRUE(series);
  EXPECT_EQ(series->front().points.size(), 1u) << "it waited in memory";
}

// A small file system of its own, in a mount namespace that ends with the test program.
class HistoryFullDisk : public HistoryTest {
 protected:
  void SetUp() override {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder().c_str(), "tmpfs", 0, "size=4m,mode=700") != 0) {
      GTEST_SKIP() << "mounting a small tmpfs is not permitted here: " << std::strerror(errno);
    }
    is_mounted_ = true;
  }
  void TearDown() override {
    close();
    if (is_mounted_) ::umount2(folder().c_str(), MNT_DETACH);
  }
  void fill_disk() {
    struct statvfs status{};
    ASSERT_EQ(::statvfs(folder().c_str(), &status), 0);
    write_bytes(folder() / "filler", std::string(status.f_bavail * status.f_frsize, 'f'));
  }
  void free_disk() { std::filesystem::remove(folder() / "filler"); }

 private:
  bool is_mounted_ = false;
};

TEST_F(HistoryFullDisk, CostsReadingsUntilThereIsRoomAgain) {
  open();
  feed(kNoon, 60);
  file().flush();
  fill_disk();
  // More than the log's last page has room for.
  for (int minute = 1; minute < 200 && file().coverage().problem.empty(); ++minute) {
    feed(kNoon + base::minutes(minute), 60, 8);
    set_now(kNoon + base::minutes(minute));
    file().flush();
  }
  EXPECT_NE(file().coverage().problem, "");
  EXPECT_TRUE(has_line("cannot be written, readings are dropped"))
      << testing::PrintToString(lines());
  EXPECT_EQ(ask_one(power(), kNoon, kNoon + base::minutes(1)).points.size(), 60u)
      << "what was there can be read";
  free_disk();
  file().flush();
  EXPECT_EQ(file().coverage().problem, "");
  const base::Instant later = kNoon + base::hours(10);
  set_now(later);
  feed(later, 60);
  file().flush();
  EXPECT_EQ(ask_one(power(), later, later + base::minutes(1)).points.size(), 60u);
}

}  // namespace
}  // namespace gpu_platform::telemetry
