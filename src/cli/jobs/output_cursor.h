#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/client_names.h"
#include "gpu_platform/v1/jobs.pb.h"

namespace gpu_platform::cli {

// A place in the output of a job, from which it is read piece by piece. The daemon answers only for
// given offsets, so the end is searched for. One call each, or a few; no thread.
class OutputCursor {
 public:
  // Without an attempt: the latest, once there is one.
  OutputCursor(Client& client, std::string id, std::optional<std::int64_t> attempt = std::nullopt)
      : client_(client), id_(std::move(id)), attempt_(attempt.value_or(0)) {}

  std::int64_t attempt() const { return attempt_; }  // 0: there was none yet
  std::int64_t offset() const { return offset_; }    // of the next byte

  // Reads the next piece and moves behind it. A piece without data: there is no more for now. Its
  // offset is larger than the cursor's was if bytes before it were rotated away.
  Called<v1::OutputChunk> next();

  // Moves to the beginning of the last `lines` lines of what there is, or to the end for 0. A last
  // line without its end counts.
  std::optional<Failure> seek_last_lines(std::uint64_t lines);

  void begin_attempt(std::int64_t attempt) {
    attempt_ = attempt;
    offset_ = 0;
  }

 private:
  Called<v1::OutputChunk> read(std::int64_t offset, std::int64_t limit);
  Called<bool> has_bytes_at(std::int64_t offset);
  Called<std::int64_t> last_block(std::int64_t first);

  Client& client_;
  std::string id_;
  std::int64_t attempt_;
  std::int64_t offset_ = 0;
};

}  // namespace gpu_platform::cli
