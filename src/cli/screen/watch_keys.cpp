#include "cli/screen/watch_keys.h"

#include <utility>

#include <fmt/format.h>

#include "cli/screen/screen.h"

namespace gpu_platform::cli {

std::string_view to_string(WatchOrder order) {
  switch (order) {
    case WatchOrder::kNode:
      return "node";
    case WatchOrder::kLeastBusy:
      return "least busy";
    case WatchOrder::kByMemory:
      return "most memory";
    case WatchOrder::kJob:
      return "job";
  }
  return "";
}

std::string_view to_string(WatchJobOrder order) {
  switch (order) {
    case WatchJobOrder::kId:
      return "id";
    case WatchJobOrder::kUser:
      return "user";
    case WatchJobOrder::kLeastBusy:
      return "least busy";
    case WatchJobOrder::kByMemory:
      return "most memory";
    case WatchJobOrder::kTimeLeft:
      return "time left";
  }
  return "";
}

namespace {

// The value after this one; the first after the last.
template <class Enum>
Enum next_of(Enum value, Enum last) {
  return value == last ? Enum() : static_cast<Enum>(std::to_underlying(value) + 1);
}

}  // namespace

void WatchKeys::take(char key) {
  switch (mode_) {
    case Mode::kTable:
      return take_command(key);
    case Mode::kHelp:
      mode_ = Mode::kTable;
      return;
    case Mode::kFilter:
    case Mode::kCancel:
      return take_text(key);
    case Mode::kConfirm:
      if (key == 'y' || key == 'Y') cancelled_ = typed_;
      mode_ = Mode::kTable;
      return;
  }
}

void WatchKeys::take_command(char key) {
  switch (key) {
    case 'q':
    case 'Q':
      is_ended_ = true;
      return;
    case '?':
    case 'h':
      mode_ = Mode::kHelp;
      return;
    case 's':
      return sort();
    case kKeyTab:
      pane_ = pane_ == WatchPane::kGpus ? WatchPane::kJobs : WatchPane::kGpus;
      return;
    case 'g':
      arrangement_.has_graphs = !arrangement_.has_graphs;
      return;
    case 'n':
      arrangement_.unit = next_of(arrangement_.unit, WatchUnit::kNode);
      return;
    case '/':
    case 'f':
      typed_ = arrangement_.filter;
      mode_ = Mode::kFilter;
      return;
    case 'x':
      typed_.clear();
      mode_ = Mode::kCancel;
      return;
    default:
      return;
  }
}

void WatchKeys::sort() {
  if (pane_ == WatchPane::kJobs) {
    arrangement_.job_order = next_of(arrangement_.job_order, WatchJobOrder::kTimeLeft);
  } else {
    arrangement_.order = next_of(arrangement_.order, WatchOrder::kJob);
  }
}

void WatchKeys::take_text(char key) {
  if (key == kKeyBackspace) {
    if (!typed_.empty()) typed_.pop_back();
  } else if (key == kKeyEnter) {
    if (mode_ == Mode::kFilter) arrangement_.filter = typed_;
    const bool asks = mode_ == Mode::kCancel && !typed_.empty();
    mode_ = asks ? Mode::kConfirm : Mode::kTable;
  } else if (key >= ' ' && typed_.size() < 64) {
    typed_.push_back(key);
  }
}

std::string WatchKeys::prompt() const {
  switch (mode_) {
    case Mode::kFilter:
      return fmt::format("show only what has (only Enter: all): {}", typed_);
    case Mode::kCancel:
      return fmt::format("cancel which job? (only Enter: none): {}", typed_);
    case Mode::kConfirm:
      return fmt::format("cancel job {}? y or n", typed_);
    default:
      return {};
  }
}

std::optional<std::string> WatchKeys::take_cancelled() {
  return std::exchange(cancelled_, std::nullopt);
}

std::vector<std::string> watch_help() {
  return {"h or ?       this page; any key goes back",
          "q            end",
          "Tab          the other table: the GPUs, or the jobs",
          "arrows, j k  scroll by a line",
          "PgUp PgDn    scroll by a page; also b and space",
          "s            sort the GPUs by node, least busy, most memory or job;",
          "             the jobs by id, user, least busy, most memory or time left",
          "/ or f       show only what has a text: a node, user, job, name or state",
          "g            graphs on or off",
          "n            a line for each GPU, for each node, or as the window has room",
          "x            cancel a job, after a question",
          "",
          "Graphs show the utilization of the last 10 minutes. 'idle 35s' marks a GPU that a",
          "job holds and that has been at 0 % for so long. In the line of a node each GPU is a",
          "bar or a digit (6: 60 to 69 %), a dot if it is free, and a cross if it is out."};
}

}  // namespace gpu_platform::cli
