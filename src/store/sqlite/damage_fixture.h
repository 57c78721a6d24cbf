#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "store/sqlite/sqlite_test_support.h"

// Stores whose files the tests damage.

namespace gpu_platform::store {

class Damage : public testing::Test {
 protected:
  std::filesystem::path path(std::string_view name) const { return dir() / name; }
  const std::filesystem::path& dir() const { return directory_.path(); }

  // Events 1 to `last` in batches of three, each ending the job with the id of its last event; a
  // snapshot after event 6.
  void fill(std::uint64_t last) { fill_on(1, last); }
  void fill_on(std::uint64_t from, std::uint64_t last) {
    const auto store = open_store(dir());
    for (std::uint64_t first = from; first <= last; first += 3) {
      const std::vector<model::Job> ended{JobBuilder(first + 2)};
      ASSERT_TRUE(append_events(*store, first, first + 2, ended,
                                {{"env-" + std::to_string(first), "A=1"}}));
      if (first + 2 == 6) {
        ASSERT_TRUE(store->put_snapshot({model::EventSeq(6), "state of 6"}));
      }
    }
  }

  // A child process that appends without end and is killed after it reported `acknowledged`
  // batches. Returns the last batch that it reported.
  std::uint64_t run_and_kill(std::uint64_t acknowledged) const {
    return run_and_kill_before(UINT64_MAX, acknowledged);
  }
  // The same, but the child appends no batch from `end` on: then the files are always the same.
  std::uint64_t run_and_kill_before(std::uint64_t end,
                                    std::uint64_t acknowledged = UINT64_MAX) const;

  static std::vector<model::EventRecord> all_events(const Journal& journal) {
    std::vector<model::EventRecord> events;
    EXPECT_TRUE(journal.replay({}, [&](const model::EventRecord& record) -> base::Status {
      events.push_back(record);
      return {};
    }));
    return events;
  }
  // Those that were kept where they were; what a recovery adds behind them is left out.
  static std::vector<std::string> kept_events(const Journal& journal) {
    std::vector<std::string> bytes;
    for (const model::EventRecord& record : all_events(journal)) {
      bytes.push_back(bytes_of(record));
      if (bytes.back() == bytes_of(event_at(record.seq.value))) continue;
      bytes.pop_back();
      break;
    }
    return bytes;
  }

  void remove(std::string_view name) const { std::filesystem::remove(path(name)); }

  void expect_data_loss(std::string_view mention) const {
    const base::Error error = open_error(dir());
    EXPECT_EQ(error.code, base::ErrorCode::kDataLoss) << error.message;
    EXPECT_TRUE(mentions(error, mention)) << error.message;
    EXPECT_TRUE(mentions(error, "store.db")) << error.message;
  }

 private:
  TemporaryDirectory directory_;
};

// One batch is one event and one ended job of the same number. At `end` it kills itself.
[[noreturn]] inline void append_until(const std::filesystem::path& dir, std::uint64_t end,
                                      int pipe) {
  auto store = SqliteStore::open(options_for(dir));
  if (!store) ::_exit(1);
  for (std::uint64_t seq = (*store)->last_seq().value + 1; seq < end; ++seq) {
    const bool is_big = seq % 50 == 0;
    const std::vector<Environment> environments{{"last", std::string(is_big ? 300'000 : 10, 'e')}};
    if (!append_events(**store, seq, seq, {JobBuilder(seq)}, environments)) ::_exit(2);
    if (::write(pipe, &seq, sizeof seq) != sizeof seq) ::_exit(3);
    if (seq % 20 == 0 && !(*store)->put_snapshot({model::EventSeq(seq), std::to_string(seq)})) {
      ::_exit(4);
    }
  }
  ::kill(::getpid(), SIGKILL);
  ::_exit(5);
}

inline std::uint64_t Damage::run_and_kill_before(std::uint64_t end,
                                                 std::uint64_t acknowledged) const {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    append_until(dir(), end, ends[1]);
  }
  ::close(ends[1]);
  std::uint64_t last = 0;
  std::uint64_t reported = 0;
  for (std::uint64_t i = 0; i < acknowledged; ++i) {
    if (::read(ends[0], &reported, sizeof reported) != sizeof reported) break;
    last = reported;
  }
  ::kill(child, SIGKILL);
  while (::read(ends[0], &reported, sizeof reported) == sizeof reported) last = reported;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself with " << WEXITSTATUS(status);
  return last;
}

}  // namespace gpu_platform::store
