#pragma once

#include <array>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/utc.h"
#include "cli/cli.h"
#include "cli/fake_server_test.h"

namespace gpu_platform::cli {

inline constexpr std::string_view kJob =
    R"({"id":"42","state":"QUEUED","submitted_at":"2026-07-01T12:00:00.000Z","exit_code":null,"wait_reason":{"code":"NO_CAPACITY","text":"1 node is 4 GPUs short"},"spec":{"name":"train","user":"ada","priority":"MEDIUM","priority_number":5,"gpus":8,"command":["python","a b.py"],"labels":{"run":"7"}}})";

// A job that ended, with the fields that say how.
inline std::string ended_job(std::string_view state, std::string_view how) {
  return fmt::format(R"({{"id":"42","name":"train","state":"{}","attempt":1,{}}})", state, how);
}

inline std::string chunk(int attempt, std::size_t offset, std::string_view data,
                         bool ended = false) {
  std::string text = fmt::format(R"({{"attempt":{},"offset":{},"data":")", attempt, offset);
  base::append_base64(text, data);
  return text + fmt::format(R"(","next_offset":{},"ended":{}}})", offset + data.size(), ended);
}

inline bool begins(std::string_view text, std::string_view with) {
  return text.starts_with(with);
}
inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// While it lives, local times are UTC.
class InUtc {
 public:
  InUtc() {
    if (const char* zone = ::getenv("TZ")) before_ = zone;
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  ~InUtc() {
    before_ ? ::setenv("TZ", before_->c_str(), 1) : ::unsetenv("TZ");
    ::tzset();
  }
  InUtc(const InUtc&) = delete;
  InUtc& operator=(const InUtc&) = delete;

 private:
  std::optional<std::string> before_;
};

// Runs commands with a terminal and a clock of the test's own.
class Cli : public testing::Test {
 protected:
  Cli() {
    out_ = ::memfd_create("out", MFD_CLOEXEC);
    err_ = ::memfd_create("err", MFD_CLOEXEC);
    EXPECT_EQ(::pipe2(interrupts_.data(), O_CLOEXEC | O_NONBLOCK), 0);
    around_.environment = {"PATH=/bin", "SECRET=hunter2"};
    around_.directory = "/home/ada";
    around_.umask = 027;
    around_.out_fd = out_;
    around_.err_fd = err_;
    around_.now = [] { return *base::parse_rfc3339("2026-07-01T12:03:12Z"); };
    around_.steady = [this] { return base::Instant(1) + clock_; };
    around_.watch_interrupts = [this] { return interrupts_[0]; };
    around_.pause = [this](base::Duration duration, int) {
      clock_ += duration;
      ++pauses_;
      if (on_pause_) on_pause_();
    };
  }
  ~Cli() override {
    for (const int fd : {out_, err_, interrupts_[0], interrupts_[1]}) ::close(fd);
  }

  int call(std::vector<std::string> words) { return run_in(around_, words); }
  int call(const FakeServer& server, std::vector<std::string> words) {
    words.insert(words.begin(), {"--server", "unix:" + server.path()});
    return run_in(around_, words);
  }
  void interrupt() { EXPECT_EQ(::write(interrupts_[1], "x", 1), 1); }

  static std::string read_back(int fd) {
    std::string text(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)), '\0');
    EXPECT_EQ(::pread(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }
  std::string out() const { return read_back(out_); }
  std::string err() const { return read_back(err_); }

  ProcessEnvironment around_;
  int out_ = -1;
  int err_ = -1;
  std::array<int, 2> interrupts_ = {-1, -1};
  base::Duration clock_;
  int pauses_ = 0;
  std::function<void()> on_pause_;
};

}  // namespace gpu_platform::cli
