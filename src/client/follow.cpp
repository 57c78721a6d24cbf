#include "client/follow.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <unistd.h>

#include "api/convert/problem.h"
#include "api/convert/text_forms.h"
#include "base/percent.h"
#include "client/exit_code.h"

namespace gpu_platform::client {

namespace {

Called<v1::OutputChunk> chunk_of(std::string_view text) {
  return read_answer<v1::OutputChunk>(text, "a piece of output");
}

std::string output_path(const std::string& id) {
  return fmt::format("/v1/jobs/{}/output", base::percent_encoded(id));
}

std::string output_of_attempt(const std::string& id, const OutputPlace& place) {
  return fmt::format("{}?offset={}&attempt={}", output_path(id), place.offset, place.attempt);
}

// Writes a piece and moves on. Says what rotation has dropped, and when the next attempt begins.
void take_chunk(Console& console, const v1::OutputChunk& chunk, OutputPlace& place) {
  const auto attempt = static_cast<std::int64_t>(chunk.attempt());
  const auto offset = static_cast<std::int64_t>(chunk.offset());
  if (attempt == 0 || attempt < place.attempt) return;
  if (attempt != place.attempt) {
    if (place.attempt > 0) console.note(fmt::format("attempt {} begins", attempt));
    place.attempt = attempt;
    place.offset = 0;
  }
  std::string_view data = chunk.data();
  if (offset > place.offset) {
    const std::int64_t gone = offset - place.offset;
    console.note(fmt::format("{} {} of output are gone: the file was rotated", gone,
                             gone == 1 ? "byte" : "bytes"));
  } else {
    // What was written already: after a break an attempt may be read from its beginning again.
    data.remove_prefix(std::min(data.size(), static_cast<std::size_t>(place.offset - offset)));
  }
  console.out(data);
  place.offset = std::max(place.offset, static_cast<std::int64_t>(chunk.next_offset()));
}

Failure output_failed() {
  return {Failure::Kind::kBadAnswer, "the output could not be written; the job goes on", {}, {}};
}

// A problem that the daemon reports in the middle of a stream.
Failure stream_problem(const std::string& data) {
  base::Error error = api::to_error(500, data);
  return {Failure::Kind::kProblem, std::move(error.message), std::move(error.field), data,
          error.code};
}

enum class StreamEnd {
  kAllSent,    // the daemon says that this was the last of it
  kBrokenOff,  // the stream ended without saying so
  kSkipped,    // an attempt between the last one read and this one was left out
};

// Reads one stream to its end, whichever it is.
Called<StreamEnd> read_stream(Console& console, EventStream& stream, OutputPlace& place,
                              Interrupts& interrupts) {
  while (true) {
    auto event = stream.next(interrupts.fd());
    if (!event) {
      if (event.error().kind != Failure::Kind::kInterrupted) return std::unexpected(event.error());
      if (!interrupts.handle()) return std::unexpected(interrupted());
      continue;
    }
    if (!event->has_value()) return StreamEnd::kBrokenOff;
    if ((*event)->name == "error") return std::unexpected(stream_problem((*event)->data));
    const auto chunk = chunk_of((*event)->data);
    if (!chunk) return std::unexpected(chunk.error());
    if (place.attempt >= 0 && chunk->attempt() > place.attempt + 1) return StreamEnd::kSkipped;
    take_chunk(console, *chunk, place);
    if (console.out_failed()) return std::unexpected(output_failed());
    if (chunk->ended()) return StreamEnd::kAllSent;
  }
}

// Follows a job's output over any number of streams. A stream that names an attempt can begin at an
// offset, but ends with that attempt; one that names none goes on from attempt to attempt, but only
// its beginning is a safe place to start, because the latest attempt may have become another one.
class OutputFollower {
 public:
  OutputFollower(Console& console, Client& client, std::string id, OutputPlace place,
                 Interrupts& interrupts)
      : console_(console),
        client_(client),
        id_(std::move(id)),
        place_(place),
        interrupts_(interrupts),
        back_off_(console, kRetryTimeout),
        names_attempt_(place.attempt > 0) {}

  std::optional<Failure> follow() {
    while (true) {
      const auto is_done = read_once();
      if (is_done && *is_done) return std::nullopt;
      if (is_done) continue;
      const Failure& failure = is_done.error();
      const bool try_again = place_.daemon_was_there && failure.is_passing();
      if (!try_again || !back_off_.wait(failure, interrupts_.fd())) return failure;
      if (interrupts_.fd() >= 0 && !interrupts_.handle()) return interrupted();
      names_attempt_ = place_.attempt > 0;
    }
  }

 private:
  // One stream. True when there is nothing more to come, false to go on with another stream at
  // once.
  Called<bool> read_once() {
    auto stream = client_.stream(names_attempt_ ? output_of_attempt(id_, place_) + "&follow=true"
                                                : output_path(id_) + "?follow=true");
    if (!stream) return std::unexpected(stream.error());
    back_off_.reset();
    place_.daemon_was_there = true;
    const auto end = read_stream(console_, *stream, place_, interrupts_);
    if (!end) return std::unexpected(end.error());
    switch (*end) {
      case StreamEnd::kSkipped:
        begin_next_attempt();
        return false;
      case StreamEnd::kAllSent:
        if (place_.is_only_attempt || !names_attempt_) return true;
        return go_on_after_attempt();
      case StreamEnd::kBrokenOff:
        break;
    }
    return std::unexpected(
        Failure{Failure::Kind::kBroken, "the stream of the output ended early", {}, {}});
  }

  // The named attempt has ended; has the job?
  Called<bool> go_on_after_attempt() {
    const auto job = client_.ask<v1::Job>("/v1/jobs/" + base::percent_encoded(id_), "a job");
    if (!job) return std::unexpected(job.error());
    if (job->attempt() > place_.attempt) {
      begin_next_attempt();
      return false;
    }
    names_attempt_ = false;
    return is_ended(job->state());
  }

  void begin_next_attempt() {
    ++place_.attempt;
    place_.offset = 0;
    names_attempt_ = true;
    if (place_.attempt > 1) console_.note(fmt::format("attempt {} begins", place_.attempt));
  }

  Console& console_;
  Client& client_;
  std::string id_;
  OutputPlace place_;
  Interrupts& interrupts_;
  BackOff back_off_;
  bool names_attempt_;
};

}  // namespace

bool is_ended(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_COMPLETED:
    case v1::JOB_STATE_FAILED:
    case v1::JOB_STATE_CANCELLED:
    case v1::JOB_STATE_TIMED_OUT:
      return true;
    default:
      return false;
  }
}

int exit_code_of_job(const v1::Job& job) {
  if (job.has_exit_code()) return static_cast<int>(job.exit_code() & 0xff);
  // The signal that ended a job which was told to stop is not the program's own.
  if (job.state() == v1::JOB_STATE_CANCELLED || job.state() == v1::JOB_STATE_TIMED_OUT) {
    return kNoExitCode;
  }
  if (const auto signal = api::signal_number(job.signal())) return 128 + *signal;
  return job.state() == v1::JOB_STATE_COMPLETED ? kOk : kNoExitCode;
}

Interrupts::Interrupts(Console& console, Client& client, std::string id)
    : console_(&console),
      client_(&client),
      id_(std::move(id)),
      fd_(console.process_environment().watch_interrupts()) {}

bool Interrupts::handle() {
  std::array<char, 16> bytes;
  const ssize_t got = ::read(fd_, bytes.data(), bytes.size());
  for (ssize_t i = 0; i < got; ++i) {
    ++count_;
    if (count_ > 2) {
      console_->note(
          fmt::format("job {} goes on; 'gpu-platform jobs describe {}' shows it", id_, id_));
      return false;
    }
    const bool first = count_ == 1;
    console_->note(first ? fmt::format("cancelling job {}; Ctrl-C again kills it", id_)
                         : fmt::format("killing job {}; Ctrl-C again leaves it running", id_));
    const auto stopped = client_->post(
        fmt::format("/v1/jobs/{}/{}", base::percent_encoded(id_), first ? "cancel" : "kill"));
    if (!stopped) console_->error(stopped.error().message);
  }
  return true;
}

std::optional<Failure> follow_output(Console& console, Client& client, const std::string& id,
                                     OutputPlace place, Interrupts& interrupts) {
  return OutputFollower(console, client, id, place, interrupts).follow();
}

std::optional<Failure> copy_output(Console& console, Client& client, const std::string& id,
                                   OutputPlace& place) {
  while (true) {
    const bool names_attempt = place.attempt > 0;
    const auto body = client.get(names_attempt ? output_of_attempt(id, place) : output_path(id));
    if (!body) return body.error();
    const auto chunk = chunk_of(*body);
    if (!chunk) return chunk.error();
    take_chunk(console, *chunk, place);
    if (console.out_failed()) return output_failed();
    if (chunk->data().empty()) return std::nullopt;
  }
}

Called<std::optional<EndedJob>> wait_for_end(Console& console, Client& client,
                                             const std::string& id,
                                             std::optional<base::Duration> at_most,
                                             Interrupts& interrupts, const TellOfJob& tell) {
  const auto& steady = console.process_environment().steady;
  const base::Instant began = steady();
  BackOff back_off(console, kRetryTimeout);
  bool daemon_was_there = false;
  while (true) {
    const base::Duration passed = steady() - began;
    base::Duration wait = tell ? kOneTold : kOneWait;
    if (at_most.has_value()) wait = std::clamp(*at_most - passed, base::Duration(), wait);
    const auto body = client.get_slow(
        fmt::format("/v1/jobs/{}/wait?timeout_seconds={:.3f}", base::percent_encoded(id),
                    static_cast<double>(base::whole_milliseconds(wait)) / 1000),
        wait, interrupts.fd());
    if (body) {
      back_off.reset();
      daemon_was_there = true;
      auto job = read_answer<v1::Job>(*body, "a job");
      if (!job) return std::unexpected(std::move(job).error());
      if (is_ended(job->state())) return EndedJob{*std::move(job), *body};
      if (tell) tell(*job);
    } else if (body.error().kind == Failure::Kind::kInterrupted) {
      if (!interrupts.handle()) return std::unexpected(interrupted());
    } else {
      const bool try_again = daemon_was_there && body.error().is_passing();
      if (!try_again || !back_off.wait(body.error(), interrupts.fd())) {
        return std::unexpected(body.error());
      }
    }
    if (at_most.has_value() && steady() - began >= *at_most) return std::optional<EndedJob>();
  }
}

bool tell_of_unshown_output(Console& console, const Failure& failure) {
  if (failure.kind != Failure::Kind::kProblem) return false;
  console.warning(fmt::format("the output is not shown: {}; the job goes on", failure.message));
  return true;
}

}  // namespace gpu_platform::client
