#pragma once

#include <optional>
#include <set>
#include <string>

#include "cli/client_names.h"
#include "cli/screen/watch_view.h"

namespace gpu_platform::cli {

// Asks the daemon for what `watch` shows. One thread.
class WatchSource {
 public:
  struct Options {
    base::Duration interval = base::seconds(1);
    // With the last minutes from the history, and readings as they come.
    bool has_past = false;
  };

  WatchSource(Client& client, const ProcessEnvironment& around, const Options& options)
      : client_(client), around_(around), options_(options) {}

  // From here on an interrupt ends a call.
  void heed(int interrupt_fd) { interrupt_fd_ = interrupt_fd; }

  // Brings the view up to now. The failure is that of the status; other parts keep what they had
  // where there is no new answer.
  Called<void> refresh();

  const WatchView& view() const { return view_; }

  // What came of it, for the person.
  std::string cancel(const std::string& job);

 private:
  template <class Message>
  Called<Message> get(const std::string& target);

  void take_status(v1::Status status);
  void find_running();
  void find_waiting();
  void find_power_limits();
  void find_past();
  void find_readings();
  bool follow_readings();
  void take(const v1::Reading& reading);
  bool is_due(base::Instant& asked_at, base::Duration interval);

  Client& client_;
  const ProcessEnvironment& around_;
  Options options_;
  int interrupt_fd_ = -1;
  WatchView view_;
  std::set<std::string> known_jobs_;  // on GPUs when the jobs were asked for
  // When it was asked for, by the steady clock; unset: never.
  base::Instant asked_jobs_, asked_limits_, asked_stream_;
  bool has_asked_past_ = false;
  std::optional<client::EventStream> readings_;
};

}  // namespace gpu_platform::cli
