#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "controller/publication.h"
#include "logging/log.h"

namespace gpu_platform::bin {

// Runs the site's notification command for jobs that asked for it: one after the other, each with
// {"event":"START","job":{...}} on stdin, the event in GPU_PLATFORM_EVENT and the job's address in
// GPU_PLATFORM_NOTIFY_TO (empty: it named none), as the daemon's own user, without a shell, and not
// longer than kLongest. Never holds the loop up: what does not fit into the queue is dropped, and
// that, like every command that fails, is logged. What was waiting when the daemon ends is not
// repeated.
class Notifier : public controller::PublicationListener {
 public:
  static constexpr std::size_t kMaxWaiting = 1000;
  static constexpr std::int64_t kLongestMs = 30'000;

  // `command`: program and arguments, separated by blanks; not empty. `log` outlives this.
  Notifier(const std::string& command, logging::Log& log);
  ~Notifier() override;

  void published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                 std::span<const model::EventRecord> events,
                 const controller::DepartedJobs& departed) override;

 private:
  struct Notice {
    std::shared_ptr<const controller::Snapshot> snapshot;
    model::Job job;
    model::NotifyOn when = model::NotifyOn::kEnd;
  };

  void enqueue(Notice notice);
  void work();
  void tell(const Notice& notice);
  // Empty when it was carried out.
  std::string run(const std::string& document, std::vector<std::string> variables);
  std::string wait_for(int pid);

  logging::Log& log_;
  std::vector<std::string> command_;
  int stop_ = -1;  // an eventfd: readable once the end has come
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Notice> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gpu_platform::bin
