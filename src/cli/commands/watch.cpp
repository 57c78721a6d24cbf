#include <fmt/format.h>

#include "base/parse.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/screen/screen.h"
#include "cli/screen/watch_page.h"
#include "cli/screen/watch_source.h"
#include "cli/text/graph.h"

namespace gpu_platform::cli {

namespace {

constexpr base::Duration kShortest = base::seconds(1);
constexpr base::Duration kLongest = base::hours(1);

struct WatchOptions {
  base::Duration interval = base::seconds(1);
  std::uint64_t count = 0;  // 0: without end
  bool has_colors = true;
};

// If the output is no terminal: one picture after the other.
int watch_plain(Console& console, WatchSource& source, const WatchOptions& options) {
  const ProcessEnvironment& around = console.process_environment();
  for (std::uint64_t shown = 0;;) {
    const std::string picture = watch_picture(source.view(), around.width, !has_utf8(around));
    if (!console.out((shown == 0 ? "" : "\n") + picture)) return kFailure;
    if (++shown == options.count) return kOk;
    around.pause(options.interval, -1);
    const auto refreshed = source.refresh();
    if (refreshed) continue;
    if (!refreshed.error().is_passing()) return report(console, refreshed.error(), false);
  }
}

// The live screen.
class LiveScreen {
 public:
  LiveScreen(Console& console, Screen& screen, WatchSource& source, const WatchOptions& options)
      : console_(console), screen_(screen), source_(source), options_(options) {}

  // Until it is ended; nothing then, or why it cannot go on.
  std::optional<Failure> run() {
    const auto& steady = console_.process_environment().steady;
    for (std::uint64_t shown = 0;;) {
      const base::Instant began = steady();
      draw();
      if (console_.out_failed() || ++shown == options_.count) return std::nullopt;
      if (!wait_until(began + options_.interval)) return std::nullopt;
      const auto refreshed = source_.refresh();
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
    if (keys_.mode() == WatchKeys::Mode::kTable) page_.scroll(key, keys_.pane());
    keys_.take(key);
    if (const auto job = keys_.take_cancelled()) note_ = source_.cancel(*job);
  }

  void draw() {
    const ProcessEnvironment& around = console_.process_environment();
    const WatchPageStyle style{.size = screen_.size(),
                               .has_colors = options_.has_colors && client::wants_color(around),
                               .is_ascii = !has_utf8(around)};
    screen_.draw(page_.lines(source_.view(), keys_, style, note_));
  }

  Console& console_;
  Screen& screen_;
  WatchSource& source_;
  WatchOptions options_;
  WatchKeys keys_;
  WatchPage page_;
  std::string note_;  // what came of the last key
};

int watch_live(Console& console, WatchSource& source, const WatchOptions& options) {
  auto screen = Screen::open(console);
  if (!screen) {
    console.error(screen.error().message);
    return kFailure;
  }
  source.heed((*screen)->interrupt_fd());
  const auto failure = LiveScreen(console, **screen, source, options).run();
  // What is said now stands on the terminal's own screen.
  screen->reset();
  if (failure) return report(console, *failure, false);
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace

int run_watch(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::optional<std::string> interval, count;
  bool is_once = false, is_plain = false;
  Arguments arguments(text);
  arguments
      .option("--interval", interval, "DURATION", "time between two updates: 1s (default) to 1h")
      .option("--count", count, "N", "end after this number of updates")
      .flag("--once", is_once,
            "print one picture and end; the default where the output is no terminal")
      .flag("--no-color", is_plain, "use no colors, as with NO_COLOR");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  WatchOptions options{.has_colors = !is_plain};
  if (is_once && (interval || count)) {
    return usage_error(console, "--once: cannot be given with --interval or --count", text.name);
  }
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
  const ProcessEnvironment& around = console.process_environment();
  const bool is_live = !is_once && Screen::is_possible(around);
  if (!is_live && !interval && !count) options.count = 1;
  // One picture on a terminal has the last minutes, too.
  WatchSource source(*client, around,
                     {.interval = options.interval, .has_past = around.width != 0});
  const auto first = source.refresh();
  if (!first) return report(console, first.error(), false);
  return is_live ? watch_live(console, source, options) : watch_plain(console, source, options);
}

}  // namespace gpu_platform::cli
