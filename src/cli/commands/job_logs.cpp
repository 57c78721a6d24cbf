#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/percent.h"
#include "base/utc.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/jobs/job_start.h"
#include "cli/jobs/output_cursor.h"
#include "cli/text/job_text.h"
#include "cli/text/line_writer.h"
#include "cli/text/text.h"
#include "cli/words/input.h"
#include "cli/words/pages.h"
#include "client/follow.h"
#include "client/members.h"

// `jobs logs`: of one job its output byte for byte, of several the lines with their jobs.

namespace gpu_platform::cli {

namespace {

constexpr PagedList kLabelledJobs{"/v1/jobs", "jobs", 10'000};
// So many jobs at most are read in one command: each costs calls of its own.
constexpr std::size_t kMaxJobs = 10'000;
constexpr base::Duration kFirstLook = base::milliseconds(100);
constexpr base::Duration kLongestLook = base::seconds(1);
// Stands before lines that were there before they could be seen to arrive.
constexpr std::string_view kUnknownTime = "-";

struct LogOptions {
  std::vector<std::string> ids, labels;
  std::optional<std::string> attempt, tail, since;
  bool follow = false;
  bool timestamps = false;
  // What these texts mean.
  std::optional<std::int64_t> attempt_number;
  std::optional<std::uint64_t> lines;
  std::optional<base::Instant> ended_after;
};

void define(Arguments& arguments, LogOptions& o) {
  arguments
      .words("ID", o.ids, 0, SIZE_MAX,
             "the jobs; the id of an array means all its members. Lines of several jobs begin with "
             "their job: '15_3: '")
      .many("-l,--label", o.labels, "KEY=VALUE",
            "instead of ID: all your jobs with this label; may be repeated")
      .flag("-f,--follow", o.follow,
            "follow the output until the jobs have ended; a job that waits is waited for")
      .option("--tail", o.tail, "N", "only the last N lines of each job (default: all)")
      .option("--since", o.since, "TIME",
              "leave out jobs that ended before: 2h, 7d, or a time. It chooses jobs, not lines, "
              "because output has no times")
      .flag("--timestamps", o.timestamps,
            "with --follow: the time at which a line arrived here, '-' for lines that were there "
            "before. Kept output has no times")
      .option("--attempt", o.attempt, "N", "output of this attempt (default: the latest)");
}

// What the words mean together, before the daemon is asked.
base::Status read_values(LogOptions& o, base::Instant now) {
  if (o.ids.empty() == o.labels.empty()) {
    return base::invalid("ID", o.ids.empty() ? "name a job, or give --label KEY=VALUE"
                                             : "is not for use with --label: give one of them");
  }
  if (o.timestamps && !o.follow) {
    return base::invalid("--timestamps",
                         "kept output has no times: give --follow, too, to see when lines arrive");
  }
  if (o.attempt) {
    const auto number = base::parse_count(*o.attempt, 1, UINT32_MAX);
    if (!number) return base::invalid("--attempt", number.error().message);
    o.attempt_number = static_cast<std::int64_t>(*number);
  }
  if (o.tail) {
    const auto lines = base::parse_count(*o.tail, 0, UINT32_MAX);
    if (!lines) return base::invalid("--tail", lines.error().message);
    o.lines = *lines;
  }
  if (o.since) {
    TRY_ASSIGN(const std::string since, past_time("--since", *o.since, now));
    o.ended_after = base::parse_rfc3339(since);
  }
  return {};
}

// ---- which jobs

Called<std::vector<v1::Job>> jobs_with_labels(Client& client, const LogOptions& o) {
  std::string query;
  for (const std::string& label : o.labels) http::append_query(query, "label", label);
  // All states: without them the daemon leaves out ended jobs, or takes those of other users.
  for (int state = v1::JOB_STATE_HELD; state <= v1::JOB_STATE_TIMED_OUT; ++state) {
    http::append_query(query, "state",
                       v1::JobState_Name(state).substr(std::string_view("JOB_STATE_").size()));
  }
  std::vector<v1::Job> jobs;
  const auto next = fetch_messages<v1::ListJobsResponse>(
      client, kLabelledJobs, query, kMaxJobs, "", [&](const v1::ListJobsResponse& page) {
        jobs.insert(jobs.end(), page.jobs().begin(), page.jobs().end());
        return page.jobs_size();
      });
  if (!next) return std::unexpected(next.error());
  std::ranges::reverse(jobs);  // the oldest first
  return jobs;
}

Called<std::vector<v1::Job>> jobs_of_words(Client& client, const LogOptions& o) {
  std::vector<v1::Job> jobs;
  for (const std::string& id : o.ids) {
    auto named = client.ask<v1::Job>("/v1/jobs/" + base::percent_encoded(id), "a job");
    if (!named) return std::unexpected(named.error());
    const std::vector<std::string> members = client::members_in(*named, id);
    jobs.push_back(*std::move(named));
    for (const std::string& member : members | std::views::drop(1)) {
      auto job = client.ask<v1::Job>("/v1/jobs/" + member, "a job");
      if (!job) return std::unexpected(job.error());
      jobs.push_back(*std::move(job));
    }
  }
  return jobs;
}

bool ended_before(const v1::Job& job, const LogOptions& o) {
  const auto ended = time_of(job.ended_at());
  return o.ended_after && ended && client::is_ended(job.state()) && *ended < *o.ended_after;
}

// ---- one job

// What a job prints to files of its own may lie where nothing above says.
void tell_of_files(Console& console, const v1::Job& job, bool is_empty) {
  if (waits_for_start(job)) {
    console.note(fmt::format("{}; 'gpu-platform jobs logs -f {}' waits for it", waiting_line(job),
                             shown_id(job)));
    return;
  }
  const std::string error = error_file(job);
  // A user cannot open the files in which the daemon keeps output, so their names help no one.
  if (is_empty && !job.spec().output().empty()) {
    console.note(fmt::format("nothing was written to {}", output_file(job)));
  } else if (is_empty) {
    console.note(fmt::format("job {} has printed nothing{}", shown_id(job),
                             client::is_ended(job.state()) ? "" : " yet"));
  }
  if (!error.empty()) console.note(fmt::format("its standard error is in {}", error));
}

std::optional<Failure> print_one(Console& console, Client& client, const std::string& id,
                                 const LogOptions& o) {
  client::OutputPlace place;
  if (o.attempt_number) place = {*o.attempt_number, 0, true, false};
  client::Interrupts none;
  if (o.follow && !o.attempt_number) {
    const auto started = await_start(console, client, id, none);
    if (!started) return started.error();
  }
  if (o.lines) {
    OutputCursor cursor(client, id, o.attempt_number);
    if (auto failure = cursor.seek_last_lines(*o.lines)) return failure;
    if (cursor.attempt() > 0) place.attempt = cursor.attempt();
    place.offset = cursor.offset();
  }
  if (o.follow) return follow_output(console, client, id, place, none);
  const std::int64_t begin = place.offset;
  auto failure = copy_output(console, client, id, place);
  if (failure) return failure;
  const auto job = client.ask<v1::Job>("/v1/jobs/" + base::percent_encoded(id), "a job");
  if (job) tell_of_files(console, *job, begin == 0 && place.offset == 0);
  return std::nullopt;
}

// ---- the lines of several jobs

// One job whose lines are written as they come.
class LineSource {
 public:
  LineSource(Console& console, Client& client, const v1::Job& job, const LogOptions& o,
             bool has_prefix)
      : console_(console),
        client_(client),
        id_(shown_id(job)),  // a plain number may mean a whole array
        options_(o),
        cursor_(client, id_, o.attempt_number),
        writer_(console, has_prefix ? id_ + ": " : "") {}

  const std::string& name() const { return id_; }
  bool is_done() const { return is_done_; }
  bool has_started() const { return cursor_.attempt() > 0; }
  void give_up() { is_done_ = true; }

  // Goes to where the reading begins, and notes what is there already.
  std::optional<Failure> begin() {
    if (options_.timestamps) {
      OutputCursor end(client_, id_, options_.attempt_number);
      if (auto failure = end.seek_last_lines(0)) return failure;
      old_attempt_ = end.attempt();
      old_end_ = end.offset();
    }
    return options_.lines ? cursor_.seek_last_lines(*options_.lines) : std::nullopt;
  }

  // Everything that is there.
  std::optional<Failure> print() {
    while (!console_.out_failed()) {
      const auto chunk = cursor_.next();
      if (!chunk) return chunk.error();
      if (chunk->data().empty()) break;
      write(*chunk);
    }
    writer_.finish({});
    return std::nullopt;
  }

  // One piece of what has come, or the step to the next attempt, or the end. False: nothing new.
  Called<bool> step() {
    const std::int64_t before = cursor_.offset();
    const auto chunk = cursor_.next();
    if (!chunk) return std::unexpected(chunk.error());
    if (!chunk->data().empty()) {
      if (static_cast<std::int64_t>(chunk->offset()) > before && before > 0) {
        console_.note(id_ + ": a part of the output is gone: the file was rotated");
      }
      write(*chunk);
      return true;
    }
    if (chunk->ended()) return end();
    if (cursor_.attempt() == 0) return false;
    const auto job = client_.ask<v1::Job>("/v1/jobs/" + id_, "a job");
    if (!job) return std::unexpected(job.error());
    if (job->attempt() <= cursor_.attempt()) return false;
    if (options_.attempt_number) return end();
    writer_.finish(stamp());
    cursor_.begin_attempt(cursor_.attempt() + 1);
    console_.note(fmt::format("{}: attempt {} begins", id_, cursor_.attempt()));
    return true;
  }

 private:
  bool end() {
    writer_.finish(stamp());
    is_done_ = true;
    return true;
  }

  std::string stamp() const {
    return options_.timestamps ? local_time(console_.process_environment().now()) : std::string();
  }

  void write(const v1::OutputChunk& chunk) {
    std::string_view bytes = chunk.data();
    const auto offset = static_cast<std::int64_t>(chunk.offset());
    if (options_.timestamps && cursor_.attempt() == old_attempt_ && offset < old_end_) {
      const auto old = std::min(bytes.size(), static_cast<std::size_t>(old_end_ - offset));
      writer_.write(bytes.substr(0, old), kUnknownTime);
      bytes.remove_prefix(old);
    }
    writer_.write(bytes, stamp());
  }

  Console& console_;
  Client& client_;
  std::string id_;
  const LogOptions& options_;
  OutputCursor cursor_;
  LineWriter writer_;
  bool is_done_ = false;
  std::int64_t old_attempt_ = 0;  // what was there before: up to old_end_ of this attempt
  std::int64_t old_end_ = 0;
};

class ManyLogs {
 public:
  ManyLogs(Console& console, std::vector<LineSource> sources)
      : console_(console),
        sources_(std::move(sources)),
        back_off_(console, client::kRetryTimeout) {}

  int print() {
    for (LineSource& source : sources_) {
      auto failure = source.begin();
      if (!failure) failure = source.print();
      if (failure && !go_on_without(source, *failure)) break;
    }
    return code();
  }

  int follow() {
    for (LineSource& source : sources_) {
      const auto failure = source.begin();
      if (failure && !go_on_without(source, *failure)) return code();
    }
    base::Duration pause = kFirstLook;
    while (true) {
      const auto moved = round();
      if (!moved || console_.out_failed()) return code();
      if (std::ranges::all_of(sources_, &LineSource::is_done)) return code();
      if (*moved) {
        pause = kFirstLook;
        continue;
      }
      tell_of_waiting();
      console_.process_environment().pause(pause, -1);
      pause = std::min(pause + pause, kLongestLook);
    }
  }

 private:
  // True: something new came. Nothing: it is over.
  std::optional<bool> round() {
    bool moved = false;
    for (LineSource& source : sources_) {
      if (source.is_done()) continue;
      const auto step = source.step();
      if (step) {
        back_off_.reset();
        moved = moved || *step;
      } else if (step.error().is_passing()) {
        if (back_off_.wait(step.error(), -1)) return true;
        code_ = report(console_, step.error(), false);
        return std::nullopt;
      } else if (!go_on_without(source, step.error())) {
        return std::nullopt;
      }
    }
    return moved;
  }

  // The output of one job may be gone, and that of the others there. False: no daemon is.
  bool go_on_without(LineSource& source, const Failure& failure) {
    source.give_up();
    Failure told = failure;
    told.message = fmt::format("{}: {}", source.name(), failure.message);
    const int code = report(console_, told, false);
    if (code_ == kOk) code_ = code;
    return failure.kind == Failure::Kind::kProblem;
  }

  void tell_of_waiting() {
    const auto waiting = std::ranges::count_if(sources_, [](const LineSource& source) {
      return !source.is_done() && !source.has_started();
    });
    if (waiting == told_waiting_) return;
    told_waiting_ = waiting;
    if (waiting == 0) return;
    console_.note(
        fmt::format("{} of {} jobs have not started; waiting for them", waiting, sources_.size()));
  }

  int code() const { return code_ == kOk && console_.out_failed() ? kFailure : code_; }

  Console& console_;
  std::vector<LineSource> sources_;
  BackOff back_off_;
  int code_ = kOk;
  std::ptrdiff_t told_waiting_ = 0;
};

int print_lines(Console& console, Client& client, const std::vector<v1::Job>& jobs,
                const LogOptions& o) {
  if (jobs.size() == 1 && o.timestamps && !o.attempt_number) {
    client::Interrupts none;
    const auto started = await_start(console, client, shown_id(jobs.front()), none);
    if (!started) return report(console, started.error(), false);
  }
  std::vector<LineSource> sources;
  std::size_t waiting = 0;
  for (const v1::Job& job : jobs) {
    sources.emplace_back(console, client, job, o, jobs.size() > 1);
    if (job.attempt() == 0 && waits_for_start(job)) ++waiting;
  }
  ManyLogs logs(console, std::move(sources));
  if (o.follow) return logs.follow();
  const int code = logs.print();
  if (waiting > 0) {
    console.note(
        fmt::format("{} of {} jobs have not started; -f waits for them", waiting, jobs.size()));
  }
  return code;
}

}  // namespace

int run_jobs_logs(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  LogOptions o;
  Arguments arguments(text);
  define(arguments, o);
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (const auto read = read_values(o, console.process_environment().now()); !read) {
    return usage_error(console, fmt::format("{}: {}", read.error().field, read.error().message),
                       text.name);
  }
  auto jobs = o.ids.empty() ? jobs_with_labels(*client, o) : jobs_of_words(*client, o);
  if (!jobs) return report(console, jobs.error(), false);
  const std::size_t all = jobs->size();
  const bool is_one = all == 1 && !o.ids.empty();
  if (all > 1 && o.attempt_number) {
    return usage_error(console, "--attempt: is for one job: name a member, as in 15_3", text.name);
  }
  std::erase_if(*jobs, [&](const v1::Job& job) { return ended_before(job, o); });
  if (jobs->empty()) {
    console.note(all == 0 ? "you have no jobs with this label"
                          : fmt::format("{} ended before {}: leave --since out to see {}",
                                        all == 1 ? "the job" : fmt::format("all {} jobs", all),
                                        local_time(*o.ended_after), all == 1 ? "it" : "them"));
    return kOk;
  }
  if (!is_one || o.timestamps) return print_lines(console, *client, *jobs, o);
  const auto failure = print_one(console, *client, shown_id(jobs->front()), o);
  return failure ? report(console, *failure, false) : static_cast<int>(kOk);
}

}  // namespace gpu_platform::cli
