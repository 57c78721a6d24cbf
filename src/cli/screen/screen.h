#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <termios.h>

#include "base/result.h"
#include "cli/client_names.h"

namespace gpu_platform::cli {

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t rows = 24;

  friend bool operator==(const ScreenSize&, const ScreenSize&) = default;
};

// What came while the screen was shown.
struct ScreenInput {
  std::vector<char> keys;    // letters as they are; arrows and page keys as kKey…
  bool interrupted = false;  // Ctrl-C or SIGTERM
  bool resized = false;
};
inline constexpr char kKeyUp = '\x01';
inline constexpr char kKeyDown = '\x02';
inline constexpr char kKeyPageUp = '\x03';
inline constexpr char kKeyPageDown = '\x04';
inline constexpr char kKeyEnter = '\x05';
inline constexpr char kKeyBackspace = '\x06';
inline constexpr char kKeyTab = '\x07';

// The keys in what a terminal sent.
std::vector<char> keys_of(std::string_view bytes);

// The whole terminal, while it lives: the alternate screen without a cursor, keys as they are
// pressed. Ends with the terminal as it was, also after Ctrl-C. One thread, one at a time.
class Screen {
 public:
  // Whether standard output is a terminal that understands this.
  static bool is_possible(const ProcessEnvironment& process_environment);
  static base::Result<std::unique_ptr<Screen>> open(Console& console);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  ScreenSize size() const;
  // Shows these lines: only those that changed are written. Lines are at most as wide as the
  // screen, and not more than its rows; they may hold colors of our own.
  void draw(const std::vector<std::string>& lines);

  // Readable when there is something for read().
  int fd() const { return events_; }
  // The descriptor of interrupts, for calls that interrupts must end.
  int interrupt_fd() const { return interrupts_; }
  // What has come; never waits.
  ScreenInput read();

 private:
  explicit Screen(Console& console) : console_(console) {}
  base::Status watch(int fd);
  void take_keyboard();

  Console& console_;
  int events_ = -1;      // epoll of the three below
  int interrupts_ = -1;  // not ours to close
  int resizes_ = -1;     // signalfd
  bool has_keys_ = false;
  termios saved_{};
  std::vector<std::string> shown_;
  ScreenSize shown_size_{.columns = 0, .rows = 0};  // when they were shown
};

}  // namespace gpu_platform::cli
