#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/utc.h"
#include "client/session.h"

namespace gpu_platform::client {

inline bool begins(std::string_view text, std::string_view with) {
  return text.starts_with(with);
}
inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The process environment of a client, with a terminal and a clock of the test's own.
class Process : public testing::Test {
 protected:
  Process() {
    out_ = ::memfd_create("out", MFD_CLOEXEC);
    err_ = ::memfd_create("err", MFD_CLOEXEC);
    EXPECT_EQ(::pipe2(interrupts_.data(), O_CLOEXEC | O_NONBLOCK), 0);
    around_.environment = {"PATH=/bin", "SECRET=hunter2"};
    around_.directory = "/home/ada";
    around_.umask = 027;
    around_.path_kind = [](const std::string&) { return PathKind::kUnknown; };
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
  ~Process() override {
    for (const int fd : {out_, err_, interrupts_[0], interrupts_[1]}) ::close(fd);
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

}  // namespace gpu_platform::client
