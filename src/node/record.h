#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "model/ids.h"

// The record of an attempt: one small file that only its supervisor writes, and that says what
// became of the attempt. The launcher creates it, which can be done only once (O_EXCL), so a
// repeated order is harmless. It is created empty and locked (flock). The supervisor inherits the
// lock and holds it until it dies, so a free lock means that there is no supervisor, and pids are
// never guessed.
//
// The first write fills the whole file, so that no later one can fail for lack of space. Each later
// write replaces one slot; a slot has a checksum, so a torn one reads as absent. A file shorter
// than the whole proves that the program was never executed.
//
// Not synced: a power cut shows as another boot id, and then nothing here is needed.

namespace gpu_platform::node {

inline constexpr std::size_t kRecordSize = 4096;

// Written before anything of the program can run.
struct Beginning {
  model::AttemptId attempt;
  std::string boot_id;
  std::uint32_t supervisor_pid = 0;
  std::uint64_t supervisor_ticks =
      0;                  // its start time: with the pid it names it for the whole boot
  std::uint32_t uid = 0;  // the user of the job
  std::string cgroup;     // absolute path; empty: none, isolation is advisory
  friend bool operator==(const Beginning&, const Beginning&) = default;
};

struct StartedRecord {
  std::uint32_t pid = 0;
  base::Instant at;
  std::uint64_t start_ticks = 0;  // of the pid, against reuse; 0 where a cgroup makes it needless
  friend bool operator==(const StartedRecord&, const StartedRecord&) = default;
};

enum class EndKind : std::uint8_t {
  kExited,      // value: exit code
  kSignalled,   // value: signal
  kNotStarted,  // nothing of the program ran; value: 127 not found, 126 cannot be executed, as
                // shells say it; 0: not the job's fault
};

enum class EndCause : std::uint8_t {
  kItself,
  kStopped,  // by a stop order; stop_code is the order's
  kTimeLimit,
  kOutOfMemory,   // the kernel killed a process of it at its memory limit
  kPrologFailed,  // the site's prolog: nothing of the job was started
  kIdleTimeout,
};
inline constexpr std::size_t kEndCauses = 6;

struct EndRecord {
  EndKind kind = EndKind::kExited;
  std::uint8_t value = 0;
  EndCause cause = EndCause::kItself;
  std::uint8_t stop_code = 0;
  base::Duration time_limit;  // kTimeLimit: the one that was over
  base::Instant at;
  base::Duration cpu_time;
  base::Bytes peak_memory;
  std::string detail;  // at most 1 KiB, cut
  friend bool operator==(const EndRecord&, const EndRecord&) = default;
};

// No process of the attempt is left, and its cgroup is removed.
struct CleanedRecord {
  base::Instant at;
  std::string epilog_failure;  // of the site's epilog, cut to 160 bytes; empty: none
  friend bool operator==(const CleanedRecord&, const CleanedRecord&) = default;
};

struct Record {
  std::optional<Beginning> beginning;
  std::optional<StartedRecord> started;
  std::optional<EndRecord> end;
  std::optional<CleanedRecord> cleaned;
};

// The bytes of one slot and where in the file they belong.
struct SlotBytes {
  std::size_t offset = 0;
  std::string bytes;
};

// The whole file with its first slot, kRecordSize bytes.
std::string encode_new_record(const Beginning& beginning);
SlotBytes encode_slot(const StartedRecord& started);
SlotBytes encode_slot(const EndRecord& end);
SlotBytes encode_slot(const CleanedRecord& cleaned);

// Slots that are damaged or absent stay empty.
Record decode_record(std::string_view file);

// ---- notices

// A notice is what the supervisor tells the daemon as it happens. Frames have one size, so that a
// reader that died in the middle leaves the FIFO at a frame's boundary; small enough that each
// write is atomic.
inline constexpr std::size_t kNoticeSize = 128;

struct Notice {
  // kEntered: one more process of the job was started for it (a later step, a command beside it).
  enum class Kind : std::uint8_t { kStarted, kStopping, kEnded, kCleaned, kEntered };
  Kind kind = Kind::kStarted;
  model::AttemptId attempt;
  StartedRecord started;       // kStarted and kEntered
  EndRecord end;               // kEnded, and kCleaned where ended_too; detail stays in the record
  bool has_detail = false;     // read the record for it
  bool ended_too = false;      // kCleaned that brings the end with it
  bool epilog_failed = false;  // kCleaned: the record says how
  friend bool operator==(const Notice&, const Notice&) = default;
};

std::string encode_notice(const Notice& notice);  // kNoticeSize bytes
std::optional<Notice> decode_notice(std::string_view frame);

}  // namespace gpu_platform::node
