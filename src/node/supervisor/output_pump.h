#pragma once

#include <cstdint>
#include <string>

namespace gpu_platform::node {

// Moves what a job writes from a pipe into files of bounded size. The file appears with the first
// byte; a full one is renamed by the place of its first byte in all of the output (full_part_path),
// and the oldest is dropped, so that a reader can follow by offset. A job is never stopped by its
// output: what cannot be stored is read and dropped, and counted; past the limit of all of it a
// line says that the rest is missing.
class OutputPump {
 public:
  struct Options {
    int output = -1;                // NodeFolders::output, open as long as we are
    std::string folder;             // in it; made with the first byte
    std::string name;               // of the file
    std::uint64_t file_bytes = 0;   // of each file; 0: no limit
    std::uint32_t files = 1;        // kept, the current one included; at least 1
    std::uint64_t limit_bytes = 0;  // of all the output; 0: no limit
  };

  explicit OutputPump(Options options);
  ~OutputPump();
  OutputPump(const OutputPump&) = delete;
  OutputPump& operator=(const OutputPump&) = delete;

  // Makes the pipe; false with errno on failure.
  bool open();
  int write_end() const { return write_end_; }
  void close_write_end();
  // Poll it for input; it is -1 once every writer has closed.
  int read_end() const { return read_end_; }

  // Moves what is in the pipe now; never waits.
  void pump();

  // Writes a line of ours behind what the job has written by now, as far as there is room.
  void note(const std::string& words);

  std::uint64_t dropped_bytes() const { return dropped_; }
  int drop_error() const { return drop_error_; }
  // The file as it is now, for reading; -1: none. The caller closes it.
  int open_for_reading() const;
  // There was more than limit_bytes.
  bool is_cut() const { return is_cut_; }

 private:
  enum class Moved { kSome, kNothing, kEnd };

  Moved move_some();
  Moved splice_some(std::uint64_t most);
  Moved copy_some(std::uint64_t most);
  Moved drop_some(int error);
  Moved drop_past_limit();
  bool is_at_limit() const;
  void write_cut_mark();
  bool open_file();
  bool open_folder();
  void rotate();
  std::uint64_t space_left() const;

  Options options_;
  int read_end_ = -1;
  int write_end_ = -1;
  int folder_ = -1;
  int file_ = -1;
  std::uint64_t start_ = 0;  // place of the file's first byte in all of the output
  std::uint64_t size_ = 0;   // of the file
  bool can_splice_ = true;
  bool is_cut_ = false;
  std::uint64_t dropped_ = 0;
  int drop_error_ = 0;
};

}  // namespace gpu_platform::node
