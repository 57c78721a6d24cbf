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
      arrangement_.order =
          arrangement_.order == WatchOrder::kJob
              ? WatchOrder::kNode
              : static_cast<WatchOrder>(std::to_underlying(arrangement_.order) + 1);
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
      return fmt::format("show GPUs with (only Enter: all): {}", typed_);
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
  return {"?           this page; any key goes back",
          "q           end",
          "s           sort by node, least busy, most memory, or job",
          "/ or f      show only GPUs with a text: a node, user, job, name or state",
          "x           cancel a job, after a question",
          "j k arrows  scroll by a line",
          "space b     scroll by a page",
          "",
          "'idle 35s' marks a GPU that a job holds and that has been at 0 % for so long."};
}

}  // namespace gpu_platform::cli
