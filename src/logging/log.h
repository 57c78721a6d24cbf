#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/common.h>

#include "logging/budget.h"

namespace gpu_platform::logging {

// Logs lines that users can cause, each with its source, to spdlog's default logger. Lines beyond
// the budget of a source are dropped, and reported when the window is over: "… 1234 lines of uid
// 1000 were not logged in the last 60 s". Lines of level debug are not counted. What the daemon
// says about itself goes to spdlog directly and is never dropped. Safe from any thread.
class Log {
 public:
  explicit Log(Budget::Limits limits = {});
  ~Log();  // tells of what it has not told yet
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  template <class... Args>
  void write(spdlog::level::level_enum level, const Source& source,
             fmt::format_string<Args...> format, Args&&... args) {
    if (may_write(level, source)) put(level, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void info(const Source& source, fmt::format_string<Args...> format, Args&&... args) {
    write(spdlog::level::info, source, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void warn(const Source& source, fmt::format_string<Args...> format, Args&&... args) {
    write(spdlog::level::warn, source, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void error(const Source& source, fmt::format_string<Args...> format, Args&&... args) {
    write(spdlog::level::err, source, format, std::forward<Args>(args)...);
  }

 private:
  bool may_write(spdlog::level::level_enum level, const Source& source);
  static void put(spdlog::level::level_enum level, const std::string& line);
  void tell(const std::vector<Budget::Dropped>& dropped) const;
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  Budget budget_;
  bool is_stopping_ = false;
  std::thread thread_;  // tells of a flood after which nothing more comes
};

}  // namespace gpu_platform::logging
