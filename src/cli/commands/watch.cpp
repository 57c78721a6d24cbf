#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/screen/screen.h"
#include "cli/screen/watch_view.h"
#include "cli/text/gpu_text.h"
#include "cli/text/job_text.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

constexpr base::Duration kShortest = base::seconds(1);
constexpr base::Duration kLongest = base::hours(1);
// Jobs asked for one by one; when more are new at once, the list is cheaper.
constexpr std::size_t kMaxSingleJobs = 32;
// The facts of a job are asked for again after this time.
constexpr base::Duration kJobsAreKept = base::minutes(1);

struct WatchOptions {
  base::Duration interval = base::seconds(1);
  std::uint64_t count = 0;  // 0: without end
};

// Asks the daemon for what is shown.
class Watcher {
 public:
  Watcher(Client& client, const ProcessEnvironment& around, base::Duration interval)
      : client_(client), around_(around), interval_(interval) {}

  // From here on an interrupt ends a call.
  void heed(int interrupt_fd) { interrupt_fd_ = interrupt_fd; }

  // Keeps the former answer where there is no new one.
  Called<void> refresh() {
    const double seconds = static_cast<double>(base::whole_milliseconds(interval_)) / 1000;
    auto status = get<v1::Status>(fmt::format("/v1/status?max_age_seconds={:.3f}", seconds));
    view_.now = around_.now();
    if (!status) {
      view_.problem = status.error().message;
      return std::unexpected(status.error());
    }
    view_.problem.clear();
    view_.status = *std::move(status);
    put_in_node_order(*view_.status.mutable_gpus(), [](const v1::Gpu& gpu) { return gpu.node(); });
    note_idle_gpus(view_);
    find_head();
    find_jobs();
    return {};
  }

  const WatchView& view() const { return view_; }

  // What came of it, for the person.
  std::string cancel(const std::string& job) {
    const auto answer = client_.post("/v1/jobs/" + base::percent_encoded(job) + "/cancel", "{}");
    return answer ? fmt::format("job {} is being cancelled", job) : answer.error().message;
  }

 private:
  template <class Message>
  Called<Message> get(const std::string& target) {
    const auto body = client_.get_slow(target, base::Duration(), interrupt_fd_);
    if (!body) return std::unexpected(body.error());
    if (auto message = client::message_of<Message>(*body)) return *std::move(message);
    return std::unexpected(
        Failure{Failure::Kind::kBadAnswer, "the daemon's answer is not a JSON object", {}, {}});
  }

  void find_head() {
    view_.head.reset();
    if (view_.status.queued_jobs() == 0) return;
    const auto queue = get<v1::GetQueueResponse>("/v1/queue?all=true&limit=1");
    if (queue && !queue->jobs().empty()) view_.head = queue->jobs(0);
  }

  // The jobs on the GPUs. Each is asked for once, and again after a while, because its time limit
  // may have been changed.
  void find_jobs() {
    if (view_.now - asked_at_ > kJobsAreKept) {
      view_.jobs.clear();
      asked_at_ = view_.now;
    }
    std::map<std::string, WatchedJob> known;
    std::set<std::string> unknown;
    for (const v1::Gpu& gpu : view_.status.gpus()) {
      for (const std::string& job : gpu.jobs()) {
        const auto found = view_.jobs.find(job);
        if (found == view_.jobs.end()) {
          unknown.insert(job);
        } else {
          known.insert(*found);
        }
      }
    }
    view_.jobs = std::move(known);
    if (unknown.size() > kMaxSingleJobs) return ask_for_all(unknown);
    for (const std::string& job : unknown) {
      const auto found = get<v1::Job>("/v1/jobs/" + base::percent_encoded(job));
      // A job of another user is not found, and will not be.
      const bool is_hidden = !found && found.error().code == base::ErrorCode::kNotFound;
      if (found || is_hidden) view_.jobs[job] = found ? watched_job(*found) : WatchedJob();
    }
  }

  void ask_for_all(const std::set<std::string>& unknown) {
    const auto list = get<v1::ListJobsResponse>(
        "/v1/jobs?all=true&state=STARTING&state=RUNNING&state=STOPPING&state=SUSPENDED"
        "&limit=10000");
    if (!list) return;
    for (const v1::Job& job : list->jobs()) {
      if (unknown.contains(job.id())) view_.jobs[job.id()] = watched_job(job);
    }
  }

  Client& client_;
  const ProcessEnvironment& around_;
  base::Duration interval_;
  int interrupt_fd_ = -1;
  base::Instant asked_at_;
  WatchView view_;
};

// A GPU that is not well, or that a job holds and does not use.
std::string colored(const std::string& line, const v1::Gpu& gpu, const WatchView& view,
                    const ProcessEnvironment& around) {
  const bool is_noted =
      !is_in_service(gpu) || !gpu.reason().empty() || !idle_text(gpu, view).empty();
  return is_noted && wants_color(around) ? fmt::format("\x1b[33m{}\x1b[0m", line) : line;
}

// If the output is no terminal: a table for each time.
int watch_plain(Console& console, Watcher& watcher, const WatchOptions& options) {
  for (std::uint64_t shown = 0;;) {
    std::string text = shown == 0 ? "" : "\n";
    for (const std::string& line : watch_header(watcher.view(), 0)) text += line + "\n";
    const std::vector<std::string> rows = watch_rows(watcher.view(), 0);
    const ClusterGpus& gpus = watcher.view().status.gpus();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      text += (i == 0 ? rows[i]
                      : colored(rows[i], gpus[static_cast<int>(i) - 1], watcher.view(),
                                console.process_environment())) +
              "\n";
    }
    if (!console.out(text)) return kFailure;
    if (++shown == options.count) return kOk;
    console.process_environment().pause(options.interval, -1);
    const auto refreshed = watcher.refresh();
    if (refreshed) continue;
    if (!refreshed.error().is_passing()) return report(console, refreshed.error(), false);
  }
}

// The live screen.
class LiveScreen {
 public:
  LiveScreen(Console& console, Screen& screen, Watcher& watcher, const WatchOptions& options)
      : console_(console), screen_(screen), watcher_(watcher), options_(options) {}

  // Until it is ended; nothing then, or why it cannot go on.
  std::optional<Failure> run() {
    const auto& steady = console_.process_environment().steady;
    for (std::uint64_t shown = 0;;) {
      const base::Instant began = steady();
      draw();
      if (console_.out_failed() || ++shown == options_.count) return std::nullopt;
      if (!wait_until(began + options_.interval)) return std::nullopt;
      const auto refreshed = watcher_.refresh();
      if (refreshed || refreshed.error().is_passing()) continue;
      if (refreshed.error().kind == Failure::Kind::kInterrupted) return std::nullopt;
      return refreshed.error();
    }
  }

 private:
  // Handles what is typed meanwhile; false when that ends it.
  bool wait_until(base::Instant deadline) {
    const ProcessEnvironment& around = console_.process_environment();
    for (base::Instant now = around.steady(); now < deadline; now = around.steady()) {
      around.pause(deadline - now, screen_.fd());
      const ScreenInput input = screen_.read();
      if (input.interrupted) return false;
      for (const char key : input.keys) take(key);
      if (keys_.is_ended()) return false;
      if (input.resized || !input.keys.empty()) draw();
    }
    return true;
  }

  void take(char key) {
    note_.clear();
    if (keys_.mode() == WatchKeys::Mode::kTable) scroll(key);
    keys_.take(key);
    if (const auto job = keys_.take_cancelled()) note_ = watcher_.cancel(*job);
  }

  void scroll(char key) {
    const std::size_t page = std::max<std::size_t>(visible_, 1);
    if (key == 'j' || key == kKeyDown) first_ += 1;
    if (key == ' ' || key == kKeyPageDown) first_ += page;
    if (key == 'k' || key == kKeyUp) first_ -= std::min<std::size_t>(first_, 1);
    if (key == 'b' || key == kKeyPageUp) first_ -= std::min(first_, page);
  }

  void draw() {
    const ScreenSize size = screen_.size();
    std::vector<std::string> lines = watch_header(watcher_.view(), size.columns);
    lines.emplace_back();
    if (keys_.mode() == WatchKeys::Mode::kHelp) {
      for (const std::string& line : watch_help()) lines.push_back(shortened(line, size.columns));
    } else {
      add_table(lines, size);
    }
    // A terminal of very few rows shows what fits.
    if (lines.size() > size.rows) lines.resize(size.rows);
    screen_.draw(lines);
  }

  void add_table(std::vector<std::string>& lines, const ScreenSize& size) {
    const WatchView view = arranged(watcher_.view(), keys_.arrangement());
    std::vector<std::string> rows = watch_rows(view, size.columns);
    lines.push_back(fmt::format("\x1b[7m{}\x1b[0m", rows.front()));
    const std::size_t gpus = rows.size() - 1;
    const std::size_t taken = lines.size() + 1;
    visible_ = size.rows > taken ? std::min(gpus, size.rows - taken) : 0;
    first_ = std::min(first_, gpus - visible_);
    for (std::size_t i = first_; i < first_ + visible_; ++i) {
      lines.push_back(colored(rows[i + 1], view.status.gpus(static_cast<int>(i)), view,
                              console_.process_environment()));
    }
    lines.push_back(shortened(footer(gpus), size.columns));
  }

  std::string footer(std::size_t gpus) const {
    if (const std::string prompt = keys_.prompt(); !prompt.empty()) return prompt;
    if (!note_.empty()) return harmless(note_);
    std::string text =
        fmt::format("every {}; ? for keys, q quits", base::written(options_.interval));
    const WatchArrangement& arrangement = keys_.arrangement();
    if (arrangement.order != WatchOrder::kNode) {
      text += fmt::format("; sorted by {}", to_string(arrangement.order));
    }
    if (!arrangement.filter.empty()) text += fmt::format("; only '{}'", arrangement.filter);
    if (visible_ == gpus) return text;
    return fmt::format("GPUs {} to {} of {}; {}", first_ + 1, first_ + visible_, gpus, text);
  }

  Console& console_;
  Screen& screen_;
  Watcher& watcher_;
  WatchOptions options_;
  WatchKeys keys_;
  std::string note_;  // what came of the last key
  std::size_t first_ = 0;
  std::size_t visible_ = 0;
};

int watch_live(Console& console, Watcher& watcher, const WatchOptions& options) {
  auto screen = Screen::open(console);
  if (!screen) {
    console.error(screen.error().message);
    return kFailure;
  }
  watcher.heed((*screen)->interrupt_fd());
  const auto failure = LiveScreen(console, **screen, watcher, options).run();
  // What is said now stands on the terminal's own screen.
  screen->reset();
  if (failure) return report(console, *failure, false);
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace

int run_watch(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::optional<std::string> interval, count;
  Arguments arguments(text);
  arguments
      .option("--interval", interval, "DURATION", "time between two updates: 1s (default) to 1h")
      .option("--count", count, "N", "end after this number of updates");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  WatchOptions options;
  if (interval.has_value()) {
    const auto given = base::parse_duration(*interval);
    if (!given) return usage_error(console, "--interval: " + given.error().message, text.name);
    if (*given < kShortest || *given > kLongest) {
      return usage_error(
          console, fmt::format("--interval: '{}' is out of range: 1s to 1h", *interval), text.name);
    }
    options.interval = *given;
  }
  if (count.has_value()) {
    const auto given = base::parse_count(*count, 1, 1'000'000'000);
    if (!given) return usage_error(console, "--count: " + given.error().message, text.name);
    options.count = *given;
  }
  Watcher watcher(*client, console.process_environment(), options.interval);
  const auto first = watcher.refresh();
  if (!first) return report(console, first.error(), false);
  return Screen::is_possible(console.process_environment())
             ? watch_live(console, watcher, options)
             : watch_plain(console, watcher, options);
}

}  // namespace gpu_platform::cli
