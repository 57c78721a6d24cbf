#include "cli/jobs/attach.h"
#include "cli/jobs/job_end.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/jobs/job_start.h"
#include "client/channel.h"
#include "client/follow.h"

namespace gpu_platform::cli {

namespace {

// The time that the scheduler gets to state a reason before `run` prints it.
constexpr base::Duration kOneLook = base::milliseconds(20);
constexpr int kMaxLooks = 50;

bool is_waiting(v1::JobState state) {
  return state == v1::JOB_STATE_HELD || state == v1::JOB_STATE_PENDING ||
         state == v1::JOB_STATE_QUEUED;
}

std::string path_of_job(const std::string& job) {
  return "/v1/jobs/" + base::percent_encoded(job);
}

Called<v1::Job> look_at(Client& client, const std::string& job) {
  return client.ask<v1::Job>(path_of_job(job), "a job");
}

// Waits for a job's next attempt, or its end.
class StartWatch {
 public:
  StartWatch(Console& console, Client& client, std::string job, client::Interrupts& interrupts)
      : console_(console),
        client_(client),
        job_(std::move(job)),
        interrupts_(interrupts),
        back_off_(console, client::kRetryTimeout) {}

  // The job as soon as it has ended, or runs an attempt after this one.
  Called<v1::Job> wait(std::int64_t after) {
    if (after == 0 && console_.shows_progress()) {
      tell_why();
      auto started = await_start(console_, client_, job_, interrupts_);
      const bool is_there = started && (client::is_ended(started->state()) ||
                                        started->state() == v1::JOB_STATE_RUNNING);
      if (!started || is_there) return started;
    }
    while (true) {
      auto job = follow(after);
      if (job) return job;
      const Failure& failure = job.error();
      if (failure.kind == Failure::Kind::kInterrupted) return job;
      if (!was_there_ || !failure.is_passing()) return job;
      if (!back_off_.wait(failure, interrupts_.fd())) return job;
    }
  }

 private:
  // One stream of changes.
  Called<v1::Job> follow(std::int64_t after) {
    auto stream = client_.stream(path_of_job(job_) + "/events");
    if (!stream) return std::unexpected(stream.error());
    back_off_.reset();
    was_there_ = true;
    while (true) {
      const auto event = stream->next(interrupts_.fd());
      if (!event && event.error().kind == Failure::Kind::kInterrupted) {
        if (!interrupts_.handle()) return std::unexpected(client::interrupted());
        continue;
      }
      if (!event) return std::unexpected(event.error());
      if (!event->has_value()) {
        return std::unexpected(
            Failure{Failure::Kind::kBroken, "the stream of changes ended early", {}, {}});
      }
      auto change = client::read_answer<v1::JobChange>((*event)->data, "a job");
      if (!change) return std::unexpected(std::move(change).error());
      const v1::Job& job = change->job();
      const bool is_next = job.attempt() > after;
      if (client::is_ended(job.state()) || (job.state() == v1::JOB_STATE_RUNNING && is_next)) {
        return std::move(*change->mutable_job());
      }
      if (is_waiting(job.state())) tell_why();
    }
  }

  // Once for each reason. The scheduler may not have looked at the job yet.
  void tell_why() {
    for (int look = 0; look < kMaxLooks; ++look) {
      const auto job = look_at(client_, job_);
      if (!job || !is_waiting(job->state())) return;
      const v1::WaitReason& reason = job->wait_reason();
      if (reason.code() != "NOT_EVALUATED") {
        if (reason.code() != told_)
          console_.note(fmt::format("job {} waits: {}", job_, reason.text()));
        told_ = reason.code();
        return;
      }
      console_.process_environment().pause(kOneLook, interrupts_.fd());
    }
  }

  Console& console_;
  Client& client_;
  const std::string job_;
  client::Interrupts& interrupts_;
  BackOff back_off_;
  bool was_there_ = false;
  std::string told_;
};

std::string attach_target(const AttachOptions& options) {
  const std::string target = path_of_job(options.job) + "/attach";
  if (!options.terminal) return target;
  return fmt::format("{}?columns={}&rows={}", target, options.terminal->columns,
                     options.terminal->rows);
}

// The launcher, too, may be away for a moment.
Called<std::shared_ptr<client::Channel>> open_patiently(Console& console,
                                                        boost::asio::io_context& io, Client& client,
                                                        const std::string& target) {
  BackOff back_off(console, client::kRetryTimeout);
  while (true) {
    auto channel = client::Channel::open(io, client, target);
    if (channel || !channel.error().is_passing()) return channel;
    if (!back_off.wait(channel.error(), -1)) return channel;
  }
}

class Attach {
 public:
  Attach(Console& console, Client& client, const AttachOptions& options)
      : console_(console), client_(client), o_(options) {}

  int run() {
    while (true) {
      client::Interrupts interrupts = watch_interrupts();
      const auto job = StartWatch(console_, client_, o_.job, interrupts).wait(attempt_);
      if (!job) return client::as_run(report(console_, job.error(), false));
      const std::int64_t latest = job->attempt();
      const bool has_ended = client::is_ended(job->state());
      show_missed(has_ended ? latest : latest - 1);
      if (has_ended) return finish();
      attempt_ = latest;
      if (const auto code = stay()) return *code;
    }
  }

 private:
  client::Interrupts watch_interrupts() {
    return o_.is_ours ? client::Interrupts(console_, client_, o_.job) : client::Interrupts();
  }

  // The exit code where there is nothing more to attach to; nothing: the attempt is over.
  std::optional<int> stay() {
    if (const auto size = terminal_size(console_.process_environment()); size && o_.terminal) {
      o_.terminal = size;  // of now
    }
    boost::asio::io_context io;
    auto channel = open_patiently(console_, io, client_, attach_target(o_));
    if (!channel) return refused(channel.error());
    const client::Stayed stayed =
        stay_with(console_, io, *std::move(channel),
                  {.has_terminal = o_.terminal.has_value(), .can_detach = o_.terminal.has_value()});
    was_seen_ = stayed.why != client::Stayed::Why::kNotOpened;
    switch (stayed.why) {
      case client::Stayed::Why::kEnded:
      case client::Stayed::Why::kNotOpened:
        return std::nullopt;
      case client::Stayed::Why::kDetached:
        console_.note(fmt::format("{}; {}", stayed.words, way_back()));
        return kNoExitCode;
      case client::Stayed::Why::kLeft:
        console_.note(way_back());
        return stayed.code;
      case client::Stayed::Why::kLost:
        if (is_over()) return std::nullopt;
        console_.note("the connection to the daemon is lost; " + way_back());
        return kNoExitCode;
      case client::Stayed::Why::kSignalled:
        break;
    }
    return signalled(stayed.code);
  }

  // An attempt that ended just now is no failure: what it printed is shown when its end is told.
  std::optional<int> refused(const Failure& failure) {
    was_seen_ = false;
    if (failure.code == base::ErrorCode::kFailedPrecondition) return std::nullopt;
    return client::as_run(report(console_, failure, false));
  }

  // Lost with the attempt, in the moment of its end.
  bool is_over() {
    const auto job = look_at(client_, o_.job);
    const bool is_there =
        job && job->state() == v1::JOB_STATE_RUNNING && job->attempt() == attempt_;
    if (job && !is_there) was_seen_ = false;
    return job && !is_there;
  }

  int signalled(int code) {
    if (!o_.is_ours) {
      console_.note(way_back());
      return code;
    }
    console_.note(fmt::format("cancelling job {}", o_.job));
    if (const auto cancelled = client_.post(path_of_job(o_.job) + "/cancel"); !cancelled) {
      return client::as_run(report(console_, cancelled.error(), false));
    }
    return finish();
  }

  std::string way_back() const {
    return fmt::format("job {0} goes on; 'gpu-platform jobs attach {0}' attaches to it again",
                       o_.job);
  }

  // Shows the output of attempts that were over before we could attach. For a job that was not
  // submitted here it shows only new output.
  void show_missed(std::int64_t last) {
    if (!o_.is_ours && attempt_ == 0) return;
    client::Interrupts none;
    for (std::int64_t attempt = attempt_ + (was_seen_ ? 1 : 0); attempt <= last; ++attempt) {
      follow_output(console_, client_, o_.job, {attempt, 0, true, true}, none);
    }
  }

  int finish() {
    client::Interrupts interrupts = watch_interrupts();
    return tell_end(console_, wait_for_end(console_, client_, o_.job, std::nullopt, interrupts));
  }

  Console& console_;
  Client& client_;
  AttachOptions o_;
  std::int64_t attempt_ = 0;  // the latest that we attached to, or tried to
  bool was_seen_ = true;      // its output, by attaching
};

// Sends standard input to a job, in a thread beside the one that follows the job's output. A
// restart of the daemon loses none of it and sends nothing twice.
class InputFeeder {
 public:
  explicit InputFeeder(Console& console) : console_(console) {}

  void begin(const Client& client, const std::string& job) {
    thread_ = std::thread([this, client, job] { feed(client, job); });
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
      if (io_ != nullptr) io_->stop();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  // Says nothing about a job that has ended: the code that follows it does.
  void feed(Client client, const std::string& job) {
    client::InputLog log;
    while (true) {
      // One for each channel: what is left over in it must not run any more.
      boost::asio::io_context io;
      auto channel =
          open_patiently(console_, io, client, path_of_job(job) + "/attach?without_output=true");
      if (!channel || !watch(&io)) return;
      const client::Stayed stayed =
          stay_with(console_, io, *std::move(channel), {.watches_signals = false, .log = &log});
      if (!watch(nullptr) || stayed.why != client::Stayed::Why::kLost) return tell(stayed);
    }
  }

  // What stop() has to stop. False: it has come already.
  bool watch(boost::asio::io_context* io) {
    const std::lock_guard lock(mutex_);
    io_ = io;
    return !is_stopping_;
  }

  void tell(const client::Stayed& stayed) {
    if (stayed.why != client::Stayed::Why::kDetached) return;
    console_.note(stayed.words + ": its input comes from there");
  }

  Console& console_;
  std::mutex mutex_;
  boost::asio::io_context* io_ = nullptr;  // null: nothing to be stopped
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace

int attach_to(Console& console, Client& client, const AttachOptions& options) {
  return Attach(console, client, options).run();
}

std::optional<Failure> follow_with_input(Console& console, Client& client, const std::string& job,
                                         client::Interrupts& interrupts) {
  const auto started = StartWatch(console, client, job, interrupts).wait(0);
  if (!started) return started.error();
  InputFeeder feeder(console);
  if (!client::is_ended(started->state())) feeder.begin(client, job);
  auto failure =
      follow_output(console, client, job, {client::OutputPlace::kNone, 0, false, true}, interrupts);
  feeder.stop();
  return failure;
}

int run_with_input(Console& console, Client& client, const std::string& job) {
  client::Interrupts interrupts(console, client, job);
  const auto failure = follow_with_input(console, client, job, interrupts);
  if (failure) return client::as_run(report(console, *failure, false));
  return tell_end(console, wait_for_end(console, client, job, std::nullopt, interrupts));
}

}  // namespace gpu_platform::cli
