#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "harness.h"

// Jobs survive what kills the platform's own processes. Each job notes its id and attempt in one
// file from inside, writes output of its own and ends with an exit code of its own, so that what
// the platform says can be compared with what happened.

namespace gpu_platform::e2e {
namespace {

constexpr int kJobs = 500;

struct Noted {
  std::map<std::string, int> runs;  // "id attempt" -> times it ran
};

class CrashRun {
 public:
  explicit CrashRun(DaemonOptions options) : daemon(std::move(options)) {
    notes_path = daemon.directory() + "/notes";
    std::ofstream(notes_path).flush();
  }

  // `key` makes a submission that is repeated after a lost answer the same submission.
  std::optional<std::string> submit(int index) {
    const std::string key = "request-" + std::to_string(index);
    const std::string body = "echo \"$GPU_PLATFORM_JOB_ID $GPU_PLATFORM_ATTEMPT\" >> " +
                             notes_path + "; echo \"begin " + std::to_string(index) + "\"; " +
                             work(index) + "echo \"end " + std::to_string(index) + "\"; exit " +
                             std::to_string(exit_code(index));
    const Finished finished =
        daemon.cli({"submit", "--gpus", std::to_string(1 + index % 2), "--cpus", "1", "--memory",
                    "64M", "--request-id", key, "--name", "job-" + std::to_string(index), "--",
                    "/bin/sh", "-c", body});
    if (finished.exit_code != 0) return std::nullopt;
    return finished.out.substr(0, finished.out.find('\n'));
  }

  // A little real work, so that some jobs are caught starting, some running and some ending; a few
  // run long enough to be found running.
  static std::string work(int index) {
    if (index % 50 == 16) return "sleep 1; ";
    return index % 5 == 0 ? "dd if=/dev/zero bs=1M count=4 2>/dev/null | sha256sum >/dev/null; "
                          : "";
  }
  static int exit_code(int index) { return index % 7 == 0 ? 1 + index % 50 : 0; }

  Noted notes() const {
    Noted noted;
    for (const std::string& line : lines_of(read_file(notes_path))) ++noted.runs[line];
    return noted;
  }

  Daemon daemon;
  std::string notes_path;
};

// Submits all jobs while `disturb` is called before every few submissions, restarting the daemon
// where it is down, and waits until all have ended.
std::map<std::string, int> submit_all(CrashRun& run, const std::function<void(int)>& disturb) {
  std::map<std::string, int> index_of;
  for (int index = 0; index < kJobs; ++index) {
    disturb(index);
    std::optional<std::string> id;
    const bool submitted = eventually([&] {
      if (!run.daemon.is_running() && !run.daemon.start()) return false;
      id = run.submit(index);
      return id.has_value();
    });
    EXPECT_TRUE(submitted) << "job " << index << "\n" << run.daemon.log();
    if (!submitted) return index_of;
    EXPECT_TRUE(index_of.emplace(*id, index).second) << "id " << *id << " was given twice";
  }
  return index_of;
}

bool all_ended(Daemon& daemon) {
  const auto status = daemon.json({"status"});
  return status.is_object() && status["queued_jobs"] == 0 && status["running_jobs"] == 0;
}

void expect_every_job_true(CrashRun& run, const std::map<std::string, int>& index_of,
                           bool losses_allowed) {
  const auto list = run.daemon.json({"jobs", "list", "--all"});
  ASSERT_TRUE(list.is_object());
  EXPECT_EQ(list["jobs"].size(), index_of.size());
  Noted noted = run.notes();
  for (const auto& job : list["jobs"]) {
    const std::string id = job["id"];
    SCOPED_TRACE("job " + id + ": " + job.dump());
    ASSERT_TRUE(index_of.contains(id));
    const int index = index_of.at(id);
    const int code = CrashRun::exit_code(index);
    EXPECT_EQ(job["state"], code == 0 ? "COMPLETED" : "FAILED");
    EXPECT_EQ(job["exit_code"], code);
    const std::size_t attempts = job["attempts"].size();
    if (!losses_allowed) {
      EXPECT_EQ(attempts, 1u);
    }
    for (std::size_t attempt = 1; attempt <= attempts; ++attempt) {
      const int runs = noted.runs[id + " " + std::to_string(attempt)];
      const bool last = attempt == attempts;
      EXPECT_LE(runs, 1) << "attempt " << attempt << " ran more than once";
      if (last) {
        EXPECT_EQ(runs, 1) << "attempt " << attempt << " did not run";
      }
    }
    const Finished logs = run.daemon.cli({"jobs", "logs", id});
    const std::string text = std::to_string(index);
    EXPECT_EQ(logs.out, "begin " + text + "\nend " + text + "\n");
  }
  std::set<std::string> known;
  for (const auto& [id, index] : index_of) known.insert(id);
  for (const auto& [line, runs] : noted.runs) {
    EXPECT_TRUE(known.contains(line.substr(0, line.find(' ')))) << "unknown job ran: " << line;
  }
}

// All time of all GPUs is accounted for, once, and the store has the lines that its journal makes.
// Ends the daemon.
void expect_books_exact(Daemon& daemon) {
  const Finished balance = daemon.cli({"report", "balance"});
  EXPECT_EQ(balance.exit_code, 0) << balance.err;
  EXPECT_TRUE(balance.out.starts_with("8 GPUs ")) << balance.out;
  // No time at which a GPU was not there is named after it.
  EXPECT_TRUE(balance.out.ends_with("The books balance.\n")) << balance.out;
  ASSERT_EQ(daemon.terminate(), 0);
  const Finished check = daemon.cli({"store", "check", "--data-dir", daemon.data_dir()});
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
}

TEST(Crash, DaemonKilledTwentyTimesLosesNoJobAndRunsNoneTwice) {
  CrashRun run({.emulate = "dgx-h100"});
  ASSERT_TRUE(run.daemon.start()) << run.daemon.log();
  std::mt19937 random(20'260'101);
  std::set<int> moments;
  while (moments.size() < 20) moments.insert(static_cast<int>(random() % kJobs));
  const auto index_of = submit_all(run, [&](int index) {
    if (moments.contains(index)) run.daemon.kill_now();
  });
  ASSERT_TRUE(run.daemon.is_running() || run.daemon.start());
  ASSERT_TRUE(eventually([&] { return all_ended(run.daemon); }, std::chrono::seconds(180)))
      << run.daemon.log();
  expect_every_job_true(run, index_of, false);
  expect_books_exact(run.daemon);
}

TEST(Crash, LauncherKilledAgainAndAgainLosesNoJobAndRunsNoneTwice) {
  CrashRun run({.emulate = "dgx-h100"});
  ASSERT_TRUE(run.daemon.start()) << run.daemon.log();
  int kills = 0;
  const auto index_of = submit_all(run, [&](int index) {
    if (index % 23 != 11) return;
    std::vector<pid_t> launchers;
    eventually([&] { return !(launchers = run.daemon.processes("launcher")).empty(); });
    for (const pid_t pid : launchers) kills += kill(pid, SIGKILL) == 0 ? 1 : 0;
  });
  EXPECT_GE(kills, 20);
  ASSERT_TRUE(eventually([&] { return all_ended(run.daemon); }, std::chrono::seconds(180)))
      << run.daemon.log();
  expect_every_job_true(run, index_of, true);
}

// A supervisor that is killed cannot say how its job ended: the attempt is called UNKNOWN and the
// job gets another one.
TEST(Crash, SupervisorsKilledCostAttemptsButNoJobs) {
  CrashRun run({.emulate = "dgx-h100",
                .config = "fault_tolerance:\n  max_retries: 50\n  retry_backoff: 1s\n"});
  ASSERT_TRUE(run.daemon.start()) << run.daemon.log();
  int kills = 0;
  const auto index_of = submit_all(run, [&](int index) {
    if (index % 50 != 17) return;
    std::vector<pid_t> supervisors;
    eventually([&] {
      supervisors = run.daemon.processes("gp-supervisor");
      return !supervisors.empty();
    });
    if (!supervisors.empty()) kills += kill(supervisors.front(), SIGKILL) == 0 ? 1 : 0;
  });
  EXPECT_GE(kills, 5);
  ASSERT_TRUE(eventually([&] { return all_ended(run.daemon); }, std::chrono::seconds(240)))
      << run.daemon.log();
  expect_every_job_true(run, index_of, true);
  expect_books_exact(run.daemon);
}

TEST(Crash, EndOfAJobWhileTheDaemonIsDownIsKnownAfterwards) {
  CrashRun run({.emulate = "dgx-h100"});
  ASSERT_TRUE(run.daemon.start()) << run.daemon.log();
  const std::string flag = run.daemon.directory() + "/flag";
  const Finished submitted =
      run.daemon.cli({"submit", "--gpus", "8", "--", "/bin/sh", "-c",
                      "echo one; until [ -e " + flag + " ]; do sleep 0.2; done; echo two; exit 9"});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  const std::string id = submitted.out.substr(0, submitted.out.find('\n'));
  ASSERT_TRUE(eventually([&] { return run.daemon.job(id)["state"] == "RUNNING"; }));
  ASSERT_EQ(run.daemon.processes("gp-supervisor").size(), 1u);
  run.daemon.kill_now();
  std::ofstream(flag).flush();
  ASSERT_TRUE(eventually([&] { return run.daemon.processes("gp-supervisor").empty(); }));
  ASSERT_TRUE(run.daemon.start()) << run.daemon.log();
  ASSERT_TRUE(eventually([&] { return run.daemon.job(id)["state"] == "FAILED"; }));
  EXPECT_EQ(run.daemon.job(id)["exit_code"], 9);
  EXPECT_EQ(run.daemon.cli({"jobs", "logs", id}).out, "one\ntwo\n");
}

TEST(Crash, SigtermLeavesJobsRunningAndExitsZero) {
  CrashRun run({.emulate = "dgx-h100"});
  ASSERT_TRUE(run.daemon.start()) << run.daemon.log();
  const Finished submitted = run.daemon.cli({"submit", "--gpus", "1", "--", "/bin/sleep", "300"});
  const std::string id = submitted.out.substr(0, submitted.out.find('\n'));
  ASSERT_TRUE(eventually([&] { return run.daemon.job(id)["state"] == "RUNNING"; }));
  const auto pid = run.daemon.job(id)["attempts"][0]["pid"];
  EXPECT_EQ(run.daemon.terminate(), 0);
  EXPECT_EQ(kill(pid.get<pid_t>(), 0), 0) << "the job ended with the daemon";
  ASSERT_TRUE(run.daemon.start()) << run.daemon.log();
  EXPECT_EQ(run.daemon.job(id)["state"], "RUNNING");
  EXPECT_EQ(run.daemon.job(id)["attempts"][0]["pid"], pid);
  EXPECT_EQ(run.daemon.cli({"jobs", "kill", id}).exit_code, 0);
  ASSERT_TRUE(eventually([&] { return run.daemon.job(id)["state"] == "CANCELLED"; }));
  EXPECT_EQ(run.daemon.job(id)["signal"], "SIGKILL");
}

}  // namespace
}  // namespace gpu_platform::e2e
