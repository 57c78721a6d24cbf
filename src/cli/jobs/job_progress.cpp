#include "cli/jobs/job_progress.h"

#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "cli/jobs/job_start.h"
#include "cli/text/job_text.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

constexpr std::string_view kPulling = "pulling the image";

// "pulling registry/train:3, 43 %": which image it is, says the job.
std::string doing_of(const v1::Job& job) {
  const std::string& detail = job.detail();
  if (!detail.starts_with(kPulling) || job.spec().image().empty()) return detail;
  return fmt::format("pulling {}{}", job.spec().image(), detail.substr(kPulling.size()));
}

// " for 1m20s"; empty without a begin.
std::string since(std::optional<base::Instant> begin, base::Instant now) {
  return begin ? " for " + age(now - *begin) : std::string();
}

std::string waiting_part(const v1::Job& job, base::Instant now) {
  std::string text = since(time_of(job.submitted_at()), now);
  if (job.attempt() > 0) text.clear();  // it waits again
  if (job.has_queue_position()) text += fmt::format(", place {}", job.queue_position());
  const std::string& reason = job.wait_reason().text();
  if (!reason.empty()) text += ": " + with_local_times(reason);
  const auto planned = time_of(job.estimated_start());
  if (planned && *planned > now) text += fmt::format("; planned start in {}", age(*planned - now));
  return text;
}

// Before its program runs.
std::string starting_part(const v1::Job& job, base::Instant now) {
  std::optional<base::Instant> begin;
  if (!job.attempts().empty()) begin = time_of(job.attempts().rbegin()->requested_at());
  const std::string doing = doing_of(job);
  return since(begin, now) + (doing.empty() ? "" : ": " + doing);
}

std::string running_part(const v1::Job& job, base::Instant now) {
  std::string text = since(time_of(job.started_at()), now);
  if (job.spec().has_time_limit_seconds()) {
    text +=
        fmt::format(" of at most {}",
                    age(base::seconds(static_cast<std::int64_t>(job.spec().time_limit_seconds()))));
  }
  const std::string place = place_of(job);
  return text + (place.empty() ? "" : " on " + place);
}

}  // namespace

std::string progress_text(const v1::Job& job, base::Instant now) {
  if (client::is_ended(job.state())) return {};
  const std::string head = fmt::format("job {} is {}", shown_id(job), state_name(job));
  if (waits_for_start(job)) return head + waiting_part(job, now);
  if (job.state() == v1::JOB_STATE_STARTING) return head + starting_part(job, now);
  return head + running_part(job, now);
}

client::TellOfJob progress_teller(Console& console, bool prints_document) {
  if (prints_document || !console.shows_progress()) return {};
  return [&console](const v1::Job& job) {
    console.progress(progress_text(job, console.process_environment().now()));
  };
}

}  // namespace gpu_platform::cli
