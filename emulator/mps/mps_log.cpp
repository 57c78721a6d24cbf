#include "mps/mps_log.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <string>

namespace gpu_emulator {

void MpsLog::line(std::string_view text) const {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm local{};
  localtime_r(&now.tv_sec, &local);
  const std::string line =
      fmt::format("[{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03} Control {:5}] {}\n",
                  local.tm_year + 1900, local.tm_mon + 1, local.tm_mday, local.tm_hour,
                  local.tm_min, local.tm_sec, now.tv_nsec / 1'000'000, ::getpid(), text);
  // A log that cannot be written stops no work.
  [[maybe_unused]] const ssize_t written = ::write(fd_, line.data(), line.size());
}

}  // namespace gpu_emulator
