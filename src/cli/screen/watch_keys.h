#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What the keys of `watch` mean: pure, so that it is tested without a terminal.

namespace gpu_platform::cli {

// The order of the GPUs.
enum class WatchOrder : std::uint8_t { kNode, kLeastBusy, kByMemory, kJob };
std::string_view to_string(WatchOrder order);

// The order of the running jobs. Waiting jobs are in the order of the queue.
enum class WatchJobOrder : std::uint8_t { kId, kUser, kLeastBusy, kByMemory, kTimeLeft };
std::string_view to_string(WatchJobOrder order);

// Whether a line stands for a GPU or for a node with all its GPUs.
enum class WatchUnit : std::uint8_t { kWhatFits, kGpu, kNode };

// What is shown, and in which order.
struct WatchArrangement {
  WatchOrder order = WatchOrder::kNode;
  WatchJobOrder job_order = WatchJobOrder::kId;
  WatchUnit unit = WatchUnit::kWhatFits;
  std::string filter;  // letters of either case; empty: everything
  bool has_graphs = true;
};

// The parts of the screen.
enum class WatchPane : std::uint8_t { kGpus, kJobs };

class WatchKeys {
 public:
  enum class Mode : std::uint8_t {
    kTable,
    kHelp,     // until any key
    kFilter,   // a text is typed
    kCancel,   // the id of a job is typed
    kConfirm,  // y cancels that job, any other key does not
  };

  // Takes a letter or a kKey… of screen.h.
  void take(char key);

  Mode mode() const { return mode_; }
  // The one that keys are for.
  WatchPane pane() const { return pane_; }
  bool is_ended() const { return is_ended_; }
  const WatchArrangement& arrangement() const { return arrangement_; }
  // The question under the tables; empty: there is none.
  std::string prompt() const;
  // The id of a job whose cancelling was confirmed, once.
  std::optional<std::string> take_cancelled();

 private:
  void take_command(char key);
  void take_text(char key);
  void sort();

  Mode mode_ = Mode::kTable;
  WatchPane pane_ = WatchPane::kGpus;
  bool is_ended_ = false;
  WatchArrangement arrangement_;
  std::string typed_;
  std::optional<std::string> cancelled_;
};

// The page of 'h'.
std::vector<std::string> watch_help();

}  // namespace gpu_platform::cli
