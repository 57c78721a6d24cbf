#include "cli/screen/repeat.h"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <poll.h>

#include "base/parse.h"
#include "cli/client_names.h"
#include "cli/screen/screen.h"
#include "cli/text/state_color.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

bool is_readable(int fd) {
  pollfd watched{fd, POLLIN, 0};
  return fd >= 0 && ::poll(&watched, 1, 0) > 0;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// A line that is too wide for the terminal, since it was made narrower, loses its colors.
std::string fitted(const std::string& line, std::size_t columns) {
  const std::string plain = without_colors(line);
  return display_width(plain) <= columns ? line : shortened(plain, columns);
}

// One block after the other, for files and pipes.
int append_blocks(Console& console, const Output& output, const Look& look, const IsOver& is_over) {
  const int interrupts = console.process_environment().watch_interrupts();
  bool is_waiting = false;
  for (bool is_first = true;; is_first = false) {
    std::string text;
    Console block(console.process_environment(), text);
    const auto looked = look(block, interrupts);
    if (looked) {
      if (is_waiting) console.note("the daemon is back");
      is_waiting = false;
      // Documents need nothing between them but in YAML.
      if (output.format == Output::Format::kYaml) console.out("---\n");
      if (!output.is_document() && !is_first) console.out("\n");
      if (!console.out(text)) return kFailure;
      if (is_over()) return kOk;
    } else if (is_first || !looked.error().is_passing()) {
      return report(console, looked.error(), output.wants_documents());
    } else if (!std::exchange(is_waiting, true)) {
      console.note(looked.error().message + "; waiting for it");
    }
    console.process_environment().pause(*output.watch, interrupts);
    if (is_readable(interrupts)) return kInterrupted;
  }
}

// The last picture, in place.
class Picture {
 public:
  Picture(Console& console, Screen& screen, const Output& output)
      : console_(console), screen_(screen), interval_(*output.watch) {}

  // Until it is ended: the exit code, or why it cannot go on.
  Called<int> run(const Look& look, const IsOver& is_over) {
    while (true) {
      std::string text;
      Console captured(console_.process_environment(), text);
      const auto looked = look(captured, screen_.interrupt_fd());
      problem_ = looked ? std::string() : looked.error().message + "; waiting for it";
      if (looked && is_over()) {
        last_ = text;
        return kOk;
      }
      if (looked) {
        lines_ = lines_of(text);
      } else if (looked.error().kind == Failure::Kind::kInterrupted) {
        return kInterrupted;
      } else if (!looked.error().is_passing()) {
        return std::unexpected(looked.error());
      }
      if (const auto ended = wait()) return *ended;
    }
  }

  // What is to stay when it has come to its end; empty: the person has ended it.
  const std::string& last() const { return last_; }

 private:
  void draw() {
    const ScreenSize size = screen_.size();
    const std::string head = fmt::format("every {}, {}; q quits", base::written(interval_),
                                         local_time(console_.process_environment().now()));
    std::vector<std::string> lines = {shortened(head, size.columns)};
    if (!problem_.empty()) lines.push_back(shortened(harmless(problem_), size.columns));
    lines.emplace_back();
    const std::size_t room = size.rows > lines.size() ? size.rows - lines.size() : 0;
    const bool fits = lines_.size() <= room;
    const std::size_t shown = fits || room == 0 ? std::min(lines_.size(), room) : room - 1;
    for (std::size_t i = 0; i < shown; ++i) lines.push_back(fitted(lines_[i], size.columns));
    if (!fits && room > 0) {
      lines.push_back(fmt::format("and {} more lines", lines_.size() - shown));
    }
    screen_.draw(lines);
  }

  // Until the next look is due; the exit code where the person ends it.
  std::optional<int> wait() {
    const ProcessEnvironment& around = console_.process_environment();
    draw();
    const base::Instant deadline = around.steady() + interval_;
    for (base::Instant now = around.steady(); now < deadline; now = around.steady()) {
      around.pause(deadline - now, screen_.fd());
      const ScreenInput input = screen_.read();
      if (input.interrupted) return kInterrupted;
      for (const char key : input.keys) {
        if (key == 'q' || key == 'Q') return kOk;
      }
      if (input.resized) draw();
    }
    return console_.out_failed() ? std::optional<int>(kFailure) : std::nullopt;
  }

  Console& console_;
  Screen& screen_;
  base::Duration interval_;
  std::vector<std::string> lines_;
  std::string problem_;
  std::string last_;
};

int repaint(Console& console, const Output& output, const Look& look, const IsOver& is_over) {
  auto screen = Screen::open(console);
  if (!screen) {
    console.error(screen.error().message);
    return kFailure;
  }
  Picture picture(console, **screen, output);
  const auto ended = picture.run(look, is_over);
  // What is said now stands on the terminal's own screen.
  screen->reset();
  if (!console.out(picture.last())) return kFailure;
  return ended ? *ended : report(console, ended.error(), false);
}

}  // namespace

int show(Console& console, const Output& output, const Look& look) {
  return show_until(console, output, look, [] { return false; });
}

int show_until(Console& console, const Output& output, const Look& look, const IsOver& is_over) {
  if (!output.watch) {
    const auto looked = look(console, -1);
    if (!looked) return report(console, looked.error(), output.wants_documents());
    return console.out_failed() ? kFailure : kOk;
  }
  const bool in_place = !output.is_document() && Screen::is_possible(console.process_environment());
  return in_place ? repaint(console, output, look, is_over)
                  : append_blocks(console, output, look, is_over);
}

int show_answer(Console& console, Client& client, const Output& output, const std::string& target,
                const Print& print) {
  return show(console, output, [&](Console& shown, int interrupt_fd) -> Called<void> {
    const auto body = client.get_slow(target, base::Duration(), interrupt_fd);
    if (!body) return std::unexpected(body.error());
    if (output.is_document() || !print(shown, *body)) print_document(shown, output, *body);
    return {};
  });
}

}  // namespace gpu_platform::cli
