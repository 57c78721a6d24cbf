#include "execution/process/engine_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "execution/process/attempt_files.h"
#include "execution/process/kept_output.h"
#include "model/job_spec.h"
#include "node/protocol.h"
#include "os/testing/eventually.h"

namespace gpu_platform::execution::testing {

namespace {

constexpr std::chrono::seconds kLimit{60};
constexpr uid_t kOtherUser = 34;  // "backup" on every Debian

}  // namespace

bool eventually(const std::function<bool()>& condition) {
  return os::eventually(condition);
}

bool is_alive(int pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return false;
  const std::size_t bracket = text.rfind(')');
  return bracket != std::string::npos && text.size() > bracket + 2 && text[bracket + 2] != 'Z';
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

void Observed::observe(Observation observation) {
  const std::lock_guard lock(mutex_);
  if (const auto* started = std::get_if<Started>(&observation)) {
    attempts_[started->attempt].note(*started);
  } else if (const auto* ended = std::get_if<Ended>(&observation)) {
    attempts_[ended->attempt].note(*ended);
  } else if (const auto* cleaned = std::get_if<Cleaned>(&observation)) {
    attempts_[cleaned->attempt].note(*cleaned);
  } else if (const auto* reset = std::get_if<ResetEnded>(&observation)) {
    resets_.push_back(*reset);
  }
  changed_.notify_all();
}

Observed::OfAttempt Observed::of(model::AttemptId attempt) const {
  const std::lock_guard lock(mutex_);
  const auto entry = attempts_.find(attempt);
  return entry == attempts_.end() ? OfAttempt{} : entry->second;
}

std::vector<ResetEnded> Observed::resets() const {
  const std::lock_guard lock(mutex_);
  return resets_;
}

bool Observed::wait_until(const std::function<bool()>& condition) const {
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  std::unique_lock lock(mutex_);
  while (true) {
    lock.unlock();
    if (condition()) return true;
    lock.lock();
    if (changed_.wait_for(lock, std::chrono::milliseconds(100)) == std::cv_status::timeout &&
        std::chrono::steady_clock::now() > deadline) {
      return false;
    }
  }
}

bool Observed::wait_started(model::AttemptId attempt) const {
  return wait_until([&] { return !of(attempt).started.empty(); });
}

bool Observed::wait_cleaned(model::AttemptId attempt) const {
  return wait_until([&] { return of(attempt).cleaned > 0; });
}

base::Result<std::string> Environments::environment(std::string_view ref) const {
  const auto entry = by_ref.find(ref);
  if (entry == by_ref.end()) return base::fail(base::ErrorCode::kNotFound, "no such environment");
  return entry->second;
}

void EngineTest::SetUp() {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: cgroups and other users";
  char name[] = "/tmp/gp-engine-XXXXXX";
  root_ = mkdtemp(name);
  chmod(root_.c_str(), 0755);
  data_ = root_ + "/data";
  work_ = root_ + "/work";
  mkdir(data_.c_str(), 0700);
  mkdir(work_.c_str(), 0777);
  chmod(work_.c_str(), 0777);
  options_.data_dir = data_;
  options_.node_program = GP_PROGRAM_DIRECTORY "/gpu-platform-node";
  options_.max_processes = 200;
  options_.private_folders = true;
  options_.launcher_rules = {.allow_root = true, .users = {.min_uid = 1}};
  options_.hide_processes = true;
  prepare();
  if (mode_ == Mode::kAdvisory) start_service();
  open_engine();
}

void EngineTest::start_service() {
  for (const char* const name : {"gpu-platform-node", "gpu-platform-container",
                                 "gpu-platform-start", "gpu-platform-driver"}) {
    const std::filesystem::path from =
        std::filesystem::path(options_.node_program).parent_path() / name;
    if (!std::filesystem::exists(from)) continue;  // not for every test
    const std::string program = root_ + "/" + name;
    std::filesystem::copy_file(from, program);
    chmod(program.c_str(), 0755);
  }
  prepare_service();
  run_service();
}

void EngineTest::restart_service() {
  waitpid(service_, nullptr, 0);
  unlink(options_.launcher_socket.c_str());
  run_service();
}

void EngineTest::prepare_service() {
  if (chown(data_.c_str(), kOtherUser, kOtherUser) != 0) GTEST_FAIL() << data_;
  options_.launcher_socket = data_ + "/launcher.sock";
}

void EngineTest::run_service() {
  const std::string program = root_ + "/gpu-platform-node";
  std::string arguments[] = {
      "setpriv", "--reuid=34", "--regid=34", "--clear-groups",         program,        "launcher",
      "--root",  folder(),     "--listen",   options_.launcher_socket, "--client-uid", "34"};
  std::string containers[] = {"--containers", options_.containers};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  if (!options_.containers.empty()) {
    for (std::string& argument : containers) argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  if (posix_spawnp(&service_, "setpriv", nullptr, nullptr, argv.data(), environ) != 0) {
    GTEST_SKIP() << "setpriv is not installed";
  }
  ASSERT_TRUE(wait_for_file(options_.launcher_socket));
}

void EngineTest::TearDown() {
  if (engine_ != nullptr) {
    open_engine();  // one that knows nothing ends and removes all that the test left
    engine_->adopt({});
    EXPECT_TRUE(eventually([&] { return list_attempts(folder()).empty(); }));
    const std::string base = engine_->node_part().detail;
    // What cleans up after containers is the launcher's and outlives it, with the cgroup it is in.
    if (mode_ == Mode::kCgroup) {
      EXPECT_TRUE(eventually([&] { return is_alone(base + "/node/cgroup.procs"); }));
    }
    close_engine();
    if (mode_ == Mode::kCgroup) {
      EXPECT_TRUE(eventually([&] { return access(base.c_str(), F_OK) != 0; })) << "left: " << base;
    }
  }
  if (service_ > 0) {
    kill(service_, SIGKILL);
    waitpid(service_, nullptr, 0);
  }
  std::error_code ignored;
  if (!root_.empty()) std::filesystem::remove_all(root_, ignored);
}

void EngineTest::open_engine() {
  close_engine();
  observed_ = std::make_unique<Observed>();
  auto opened = ProcessEngine::open(options_, environments_, *observed_);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  engine_ = std::move(*opened);
  ASSERT_EQ(engine_->node_part().has_cgroups, mode_ == Mode::kCgroup)
      << engine_->node_part().detail;
}

void EngineTest::close_engine() {
  engine_.reset();
}

StartOrder EngineTest::order(std::uint64_t job, std::vector<std::string> command) const {
  auto spec = std::make_shared<model::JobSpec>();
  spec->name = "test";
  spec->command = std::move(command);
  spec->workdir = work_;
  spec->uid = mode_ == Mode::kAdvisory ? kOtherUser : 0;
  spec->gid = spec->uid;
  StartOrder start;
  start.attempt = {model::JobId(job), 1};
  start.spec = spec;
  start.nodes = {LaunchNode{model::NodeId(1), "here", false, {}, 1, base::kGiB, {}}};
  start.boot_id = boot_id();
  start.stop_grace = base::seconds(30);
  return start;
}

StartOrder EngineTest::shell(std::uint64_t job, const std::string& script) const {
  return order(job, {"/bin/sh", "-c", script});
}

Ended EngineTest::run(const StartOrder& start) {
  engine_->start(start);
  EXPECT_TRUE(observed_->wait_cleaned(start.attempt));
  const Observed::OfAttempt seen = observed_->of(start.attempt);
  EXPECT_TRUE(seen.in_order);
  EXPECT_EQ(seen.ended.size(), 1u);
  return seen.ended.empty() ? Ended{} : seen.ended.front();
}

void EngineTest::adopt(const StartOrder& start, model::AttemptState state) {
  engine_->adopt({{start, state}});
}

bool EngineTest::is_alone(const std::string& processes) const {
  const std::string lines = read(processes);
  return std::ranges::count(lines, '\n') <= 1;
}

std::string EngineTest::read(const std::string& file) const {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::string EngineTest::output(const StartOrder& start) const {
  return read(kept_output_path(folder(), start.attempt));
}

std::uint32_t EngineTest::supervisor_pid(model::AttemptId attempt) const {
  std::uint32_t pid = 0;
  eventually([&] {
    const auto beginning = read_attempt(folder(), attempt).record.beginning;
    if (beginning) pid = beginning->supervisor_pid;
    return pid != 0;
  });
  return pid;
}

std::filesystem::path EngineTest::cgroup_of(model::AttemptId attempt) const {
  const auto beginning = read_attempt(folder(), attempt).record.beginning;
  return beginning ? beginning->cgroup : std::string();
}

bool EngineTest::wait_for_file(const std::string& file) const {
  return eventually([&] { return access(file.c_str(), F_OK) == 0; });
}

}  // namespace gpu_platform::execution::testing
