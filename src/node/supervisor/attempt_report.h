#pragma once

#include <optional>

#include "node/protocol.h"
#include "node/record.h"

namespace gpu_platform::node {

// A supervisor's report of its attempt: the record, which is the truth and outlives everything, and
// notices to the daemon, which only save it from reading records.
class AttemptReport {
 public:
  // `record_fd`: made and locked by the launcher. `notice_fd`: a FIFO that does not block, or -1.
  // Neither is owned.
  AttemptReport(model::AttemptId attempt, int record_fd, int notice_fd)
      : attempt_(attempt), record_fd_(record_fd), notice_fd_(notice_fd) {}

  // Writes the whole record. False: it could not be written.
  bool begin(const Beginning& beginning);
  void write(const SlotBytes& slot);

  // Sends the notice, or keeps it while the FIFO is full. Of several unsent notices only the last
  // is kept: any of them makes the daemon read the record.
  void send(Notice notice);
  void retry();
  bool has_unsent() const { return unsent_.has_value(); }

 private:
  const model::AttemptId attempt_;
  const int record_fd_;
  const int notice_fd_;
  std::optional<Notice> unsent_;
};

}  // namespace gpu_platform::node
