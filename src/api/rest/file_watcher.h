#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace gpu_platform::api {

// Reports when files grow, through inotify: following output costs nothing while none comes. It
// watches directories, so that a file that is made later and one that is rotated are seen too.
// Thread: the io context's one thread.
class FileWatcher {
 public:
  explicit FileWatcher(boost::asio::io_context& context) : descriptor_(context) {}
  FileWatcher(const FileWatcher&) = delete;
  FileWatcher& operator=(const FileWatcher&) = delete;

  // Ends its watch when it is destroyed; may outlive the watcher.
  class Watch {
   public:
    ~Watch();

   private:
    friend class FileWatcher;
    FileWatcher* watcher_ = nullptr;
    int directory_ = -1;
    std::string prefix_;
    std::function<void()> changed_;
  };

  // Calls `changed` after a change of `path`, or of a file in its directory with a name that begins
  // with it. Returns null if that cannot be watched: the directory does not exist yet, the system's
  // watches are used up, or inotify is missing.
  std::unique_ptr<Watch> watch(const std::string& path, std::function<void()> changed);

  ~FileWatcher();

 private:
  bool open();
  void read();
  void handle(std::size_t bytes);
  void tell(int directory, std::string_view name);
  void forget(Watch& watch);

  boost::asio::posix::stream_descriptor descriptor_;
  alignas(8) std::array<char, 16384> events_;
  std::multimap<int, Watch*> watches_;  // by inotify's number for the directory
};

}  // namespace gpu_platform::api
