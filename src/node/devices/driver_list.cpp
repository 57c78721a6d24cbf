#include "node/devices/driver_list.h"

#include <fcntl.h>

#include "os/small_file.h"

namespace gpu_platform::node {

namespace {
constexpr std::int64_t kMaxAgeMs = 1'000;
}

const std::string& DriverList::text(std::int64_t now_ms) {
  const bool is_fresh = read_at_ms_ && now_ms - *read_at_ms_ < kMaxAgeMs;
  return is_fresh ? text_ : read_again(now_ms);
}

const std::string& DriverList::read_again(std::int64_t now_ms) {
  text_ = os::read_small_file(AT_FDCWD, path_.c_str());
  read_at_ms_ = now_ms;
  return text_;
}

}  // namespace gpu_platform::node
