#include "api/rest/file_watcher.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include <boost/asio/buffer.hpp>

namespace gpu_platform::api {

namespace {

constexpr std::uint32_t kEvents =
    IN_MODIFY | IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_ONLYDIR;

}  // namespace

FileWatcher::~FileWatcher() {
  for (auto& [directory, watch] : watches_) watch->watcher_ = nullptr;
}

FileWatcher::Watch::~Watch() {
  if (watcher_ != nullptr) watcher_->forget(*this);
}

std::unique_ptr<FileWatcher::Watch> FileWatcher::watch(const std::string& path,
                                                       std::function<void()> changed) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos || !open()) return nullptr;
  const std::string directory = slash == 0 ? "/" : path.substr(0, slash);
  const int number = ::inotify_add_watch(descriptor_.native_handle(), directory.c_str(), kEvents);
  if (number < 0) return nullptr;
  auto watch = std::make_unique<Watch>();
  watch->watcher_ = this;
  watch->directory_ = number;
  watch->prefix_ = path.substr(slash + 1);
  watch->changed_ = std::move(changed);
  watches_.emplace(number, watch.get());
  return watch;
}

bool FileWatcher::open() {
  if (descriptor_.is_open()) return true;
  const int descriptor = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor < 0) return false;
  boost::system::error_code error;
  descriptor_.assign(descriptor, error);
  if (error) {
    ::close(descriptor);
    return false;
  }
  read();
  return true;
}

void FileWatcher::read() {
  descriptor_.async_read_some(boost::asio::buffer(events_),
                              [this](const boost::system::error_code& error, std::size_t bytes) {
                                // Cancelled: the watcher is gone.
                                if (error) return;
                                handle(bytes);
                                read();
                              });
}

void FileWatcher::handle(std::size_t bytes) {
  std::size_t at = 0;
  while (at + sizeof(inotify_event) <= bytes) {
    inotify_event event{};
    std::memcpy(&event, events_.data() + at, sizeof event);
    const char* name = events_.data() + at + sizeof event;
    const std::size_t length = event.len == 0 ? 0 : ::strnlen(name, event.len);
    tell(event.wd, std::string_view(name, length));
    at += sizeof event + event.len;
  }
}

void FileWatcher::tell(int directory, std::string_view name) {
  // -1: events were lost, so anything may have changed. The callbacks may end watches: copies.
  std::vector<std::function<void()>> changed;
  for (const auto& [number, watch] : watches_) {
    const bool concerns =
        directory == -1 || (number == directory && name.starts_with(watch->prefix_));
    if (concerns) changed.push_back(watch->changed_);
  }
  for (const auto& call : changed) call();
}

void FileWatcher::forget(Watch& watch) {
  const auto [begin, end] = watches_.equal_range(watch.directory_);
  for (auto it = begin; it != end; ++it) {
    if (it->second != &watch) continue;
    watches_.erase(it);
    break;
  }
  if (!watches_.contains(watch.directory_)) {
    ::inotify_rm_watch(descriptor_.native_handle(), watch.directory_);
  }
}

}  // namespace gpu_platform::api
