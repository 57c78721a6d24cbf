#include "node/supervisor/attempt_report.h"

#include <errno.h>
#include <unistd.h>

namespace gpu_platform::node {

bool AttemptReport::begin(const Beginning& beginning) {
  const std::string file = encode_new_record(beginning);
  return pwrite(record_fd_, file.data(), file.size(), 0) == static_cast<ssize_t>(kRecordSize);
}

// Cannot run out of space, since the file is whole. A disk that fails leaves the slot unreadable,
// and then what became of the attempt is not known.
void AttemptReport::write(const SlotBytes& slot) {
  [[maybe_unused]] const ssize_t wrote =
      pwrite(record_fd_, slot.bytes.data(), slot.bytes.size(), static_cast<off_t>(slot.offset));
}

void AttemptReport::send(Notice notice) {
  notice.attempt = attempt_;
  unsent_ = notice;
  retry();
}

// Only a full FIFO is worth another try: without a daemon no process reads it.
void AttemptReport::retry() {
  if (!unsent_) return;
  const std::string frame = encode_notice(*unsent_);
  const bool is_full =
      notice_fd_ >= 0 && ::write(notice_fd_, frame.data(), frame.size()) < 0 && errno == EAGAIN;
  if (!is_full) unsent_.reset();
}

}  // namespace gpu_platform::node
