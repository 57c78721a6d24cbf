#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpu_platform::listener {

// Follows an answer of the daemon: changes its head for the client and finds its end. The body is
// passed on as it is. Damaged is what the daemon does not write.
class AnswerReader {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  struct Options {
    bool is_last = false;         // the connection ends with this answer
    bool has_head_alone = false;  // it answers HEAD
  };
  // `added`: fields that the client gets besides; `if_ok`: those of an answer 200 alone.
  AnswerReader(Fields added, Options options, Fields if_ok = {})
      : added_(std::move(added)), if_ok_(std::move(if_ok)), options_(options) {}

  // Takes bytes of the daemon and appends what the client gets to `out`. False: damaged, or more
  // than one answer.
  bool put(std::string_view bytes, std::string& out);
  // The daemon has closed. False: the answer is cut.
  bool finish();

  bool has_head() const { return is_head_done_; }
  bool is_done() const { return is_done_; }
  int status() const { return status_; }
  bool is_switching() const { return status_ == 101; }  // what follows is no HTTP
  bool daemon_closes() const { return daemon_closes_; }

 private:
  enum class Body { kNone, kLength, kChunked, kUntilClose };
  enum class Chunk { kSize, kData, kDataEnd, kLastEnd };

  bool read_head(std::string& out);
  bool read_field(std::string_view line, std::string& out);
  bool follow(std::string_view bytes);
  bool follow_chunks(std::string_view bytes);
  bool read_size();

  const Fields added_;
  const Fields if_ok_;
  const Options options_;
  std::string head_;
  std::string line_;  // of a chunk
  Body body_ = Body::kUntilClose;
  Chunk chunk_ = Chunk::kSize;
  std::uint64_t left_ = 0;
  int status_ = 0;
  bool daemon_closes_ = false;
  bool is_head_done_ = false;
  bool is_done_ = false;
};

}  // namespace gpu_platform::listener
