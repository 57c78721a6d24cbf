#include "cli/jobs/job_start.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <poll.h>

#include "base/percent.h"
#include "cli/jobs/job_progress.h"
#include "cli/text/job_text.h"
#include "cli/text/message_text.h"

namespace gpu_platform::cli {

namespace {

constexpr base::Duration kFirstPause = base::milliseconds(50);
// A start that takes no longer is not told of.
constexpr base::Duration kUntold = base::seconds(1);
constexpr base::Duration kLongestPause = base::seconds(1);
// Counts in a reason change all the time; the same kind of reason is not told more often.
constexpr base::Duration kBetweenCounts = base::minutes(1);

// Tells the reason when its kind changes, and its numbers now and then.
class ReasonTeller {
 public:
  explicit ReasonTeller(Console& console) : console_(console) {}

  void tell(const v1::Job& job) {
    const v1::WaitReason& reason = job.wait_reason();
    // The scheduler has not looked at it yet.
    if (reason.code() == "NOT_EVALUATED") return;
    const std::string kind = state_name(job) + reason.code();
    const base::Instant now = console_.process_environment().steady();
    const bool is_new = kind != kind_;
    if (!is_new && (reason.text() == text_ || now - told_ < kBetweenCounts)) return;
    kind_ = kind;
    text_ = reason.text();
    told_ = now;
    console_.note(waiting_line(job) + "; waiting for it to start");
  }

 private:
  Console& console_;
  std::string kind_, text_;
  base::Instant told_;
};

}  // namespace

bool has_interrupt(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  return fd >= 0 && ::poll(&waiting, 1, 0) > 0;
}

bool waits_for_start(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_HELD || job.state() == v1::JOB_STATE_PENDING ||
         job.state() == v1::JOB_STATE_QUEUED;
}

std::string waiting_line(const v1::Job& job) {
  const std::string& reason = job.wait_reason().text();
  return fmt::format("job {} is {}{}{}", shown_id(job), state_name(job), reason.empty() ? "" : ": ",
                     reason);
}

Called<v1::Job> await_start(Console& console, Client& client, const std::string& id,
                            client::Interrupts& interrupts) {
  ReasonTeller teller(console);
  const client::TellOfJob progress = progress_teller(console);
  const auto& steady = console.process_environment().steady;
  const base::Instant began = steady();
  BackOff back_off(console, client::kRetryTimeout);
  base::Duration pause = kFirstPause;
  for (bool was_there = false;;) {
    auto job = client.ask<v1::Job>("/v1/jobs/" + base::percent_encoded(id), "a job");
    if (!job) {
      const bool try_again = was_there && job.error().is_passing();
      if (!try_again || !back_off.wait(job.error(), interrupts.fd())) return job;
    } else {
      was_there = true;
      back_off.reset();
      if (progress) {
        if (steady() - began >= kUntold) progress(*job);
      } else if (waits_for_start(*job)) {
        teller.tell(*job);
      }
      // A person sees how its image is pulled, too.
      const bool is_starting = progress && job->state() == v1::JOB_STATE_STARTING;
      if (!is_starting && (!waits_for_start(*job) || job->attempt() > 0)) {
        console.progress({});
        return job;
      }
      console.process_environment().pause(pause, interrupts.fd());
      pause = std::min(pause + pause, kLongestPause);
    }
    if (has_interrupt(interrupts.fd()) && !interrupts.handle()) {
      return std::unexpected(client::interrupted());
    }
  }
}

}  // namespace gpu_platform::cli
