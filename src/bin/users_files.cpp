#include "bin/users_files.h"

#include <chrono>
#include <mutex>

namespace gpu_platform::bin {

namespace {

// Less than the door waits for the whole answer (host/slow_calls.h), so that the reason is told.
constexpr std::chrono::milliseconds kTimeout{1'500};

}  // namespace

struct UsersFiles::Link {
  std::mutex mutex;
  execution::ProcessEngine* engine = nullptr;
};

std::shared_ptr<UsersFiles::Link> UsersFiles::make_link() {
  return std::make_shared<Link>();
}

void UsersFiles::connect(execution::ProcessEngine& engine) {
  const std::lock_guard lock(link_->mutex);
  link_->engine = &engine;
}

void UsersFiles::disconnect() {
  const std::lock_guard lock(link_->mutex);
  link_->engine = nullptr;
}

base::Result<os::Descriptor> UsersFiles::open(std::uint32_t uid, const std::string& path) const {
  os::Descriptor answer;
  {
    const std::lock_guard lock(link_->mutex);
    if (link_->engine == nullptr) {
      return base::fail(base::ErrorCode::kUnavailable, "the daemon is stopping");
    }
    TRY_ASSIGN(answer, link_->engine->ask_for_users_file(uid, path));
  }
  return execution::ProcessEngine::take_users_file(answer, path, kTimeout);
}

}  // namespace gpu_platform::bin
