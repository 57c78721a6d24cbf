#include "logging/log.h"

#include <chrono>

#include <spdlog/spdlog.h>

#include "os/clock.h"

namespace gpu_platform::logging {

namespace {

// A user with many user ids must not get a line for each.
constexpr std::size_t kMaxNamed = 10;

base::Instant steady_now() {
  return base::Instant(os::monotonic_ns());
}

std::chrono::steady_clock::time_point time_point(base::Instant at) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(at.unix_ns()));
}

}  // namespace

Log::Log(Budget::Limits limits) : budget_(limits), thread_([this] { run(); }) {}

Log::~Log() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  tell(budget_.close());
}

bool Log::may_write(spdlog::level::level_enum level, const Source& source) {
  if (!spdlog::default_logger_raw()->should_log(level)) return false;
  if (level <= spdlog::level::debug) return true;
  std::vector<Budget::Dropped> dropped;
  bool may = false;
  {
    const std::lock_guard lock(mutex_);
    const base::Instant now = steady_now();
    dropped = budget_.close_if_over(now);
    const bool was_due = budget_.due().is_set();
    may = budget_.take(source, now);
    if (!was_due && budget_.due().is_set()) wake_.notify_one();
  }
  tell(dropped);
  return may;
}

void Log::put(spdlog::level::level_enum level, const std::string& line) {
  spdlog::default_logger_raw()->log(level, spdlog::string_view_t(line.data(), line.size()));
}

void Log::tell(const std::vector<Budget::Dropped>& dropped) const {
  const std::int64_t seconds = budget_.limits().window.value() / 1'000'000'000;
  const auto line = [seconds](std::uint64_t lines, const std::string& source) {
    put(spdlog::level::warn,
        fmt::format("… {} line{} of {} {} not logged in the last {} s", lines,
                    lines == 1 ? "" : "s", source, lines == 1 ? "was" : "were", seconds));
  };
  std::uint64_t of_others = 0;
  for (std::size_t i = 0; i < dropped.size(); ++i) {
    if (i < kMaxNamed) {
      line(dropped[i].lines, dropped[i].source);
    } else {
      of_others += dropped[i].lines;
    }
  }
  if (of_others != 0) line(of_others, fmt::format("{} others", dropped.size() - kMaxNamed));
}

void Log::run() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    const base::Instant due = budget_.due();
    if (!due.is_set()) {
      wake_.wait(lock);
      continue;
    }
    if (steady_now() < due) {
      wake_.wait_until(lock, time_point(due));
      continue;
    }
    const auto dropped = budget_.close();
    lock.unlock();
    tell(dropped);
    lock.lock();
  }
}

}  // namespace gpu_platform::logging
