#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/screen/screen.h"
#include "cli/screen/watch_keys.h"
#include "cli/screen/watch_view.h"

// All that `watch` shows: the header, the GPUs, the jobs, a graph and the keys.

namespace gpu_platform::cli {

struct WatchPageStyle {
  ScreenSize size;
  bool has_colors = false;
  bool is_ascii = false;  // no other characters are shown, not in names either
};

// The lines of the live screen, and where its tables are scrolled to. No terminal, no clock.
class WatchPage {
 public:
  // Moves the table by an arrow or page key; other keys do nothing.
  void scroll(char key, WatchPane pane);

  // As many lines as the screen has rows, none wider than it. A screen with few rows shows the
  // pane of the keys alone. `note`: what came of the last key.
  std::vector<std::string> lines(const WatchView& view, const WatchKeys& keys,
                                 const WatchPageStyle& style, std::string_view note);

 private:
  struct Part {
    std::size_t first = 0;
    std::size_t visible = 0;
    std::size_t all = 0;
  };
  Part& part(WatchPane pane) { return parts_[static_cast<std::size_t>(pane)]; }
  const Part& part(WatchPane pane) const { return parts_[static_cast<std::size_t>(pane)]; }
  std::vector<std::string> tables(const WatchView& view, const WatchKeys& keys,
                                  const WatchPageStyle& style, std::size_t room);
  void add_table(const WatchTable& table, WatchPane pane, const WatchKeys& keys,
                 const WatchPageStyle& style, std::vector<std::string>& lines);
  std::string footer(const WatchKeys& keys, std::string_view note) const;

  std::array<Part, 2> parts_;
  bool shows_nodes_ = false;  // in the place of the GPUs
};

// All GPUs and jobs as text without control sequences, for one look: bars where `width` is not 0.
std::string watch_picture(const WatchView& view, std::size_t width, bool is_ascii);

}  // namespace gpu_platform::cli
