#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpu_platform::listener {

// Follows an answer of the daemon: changes its head for the client and finds its end. The body is
// passed on as it is. Damaged is what is no HTTP/1.1.
class AnswerReader {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  struct Options {
    bool is_last = false;         // the connection ends with this answer
    bool has_head_alone = false;  // it answers HEAD
  };
  // `added`: fields that the client gets besides; `if_ok`: those of an answer 200 alone.
  AnswerReader(Fields added, Options options, Fields if_ok = {});
  ~AnswerReader();

  // Takes bytes of the daemon and appends what the client gets to `out`. False: damaged, or more
  // than one answer.
  bool put(std::string_view bytes, std::string& out);
  // The daemon has closed. False: the answer is cut.
  bool finish();

  bool has_head() const { return is_head_done_; }
  bool is_done() const;
  int status() const;
  bool is_switching() const { return status() == 101; }  // what follows is no HTTP
  bool daemon_closes() const;

 private:
  class Parser;

  bool read_head(std::string& out);
  bool follow();
  void write_head(std::string& out) const;

  const Fields added_;
  const Fields if_ok_;
  const Options options_;
  const std::unique_ptr<Parser> parser_;
  std::string held_;  // bytes that the parser has not taken yet
  bool is_head_done_ = false;
};

}  // namespace gpu_platform::listener
