#include "node/record.h"

#include <cstring>

#include "base/codec.h"
#include "base/hash.h"

namespace gpu_platform::node {

namespace {

using base::Decoder;
using base::Encoder;

constexpr std::uint32_t kFormat = 2;
constexpr std::size_t kMaxDetail = 1024;
constexpr std::uint64_t kNoticeKinds = 5;
constexpr std::size_t kMaxEpilogFailure = 160;
constexpr std::size_t kSlotHeader = 16;  // length and checksum, 8 bytes each, little-endian

struct Slot {
  std::size_t offset;
  std::size_t size;
};
// Room for the longest path a cgroup can have in the first, for a detail in the third.
constexpr Slot kBeginning{0, 2048};
constexpr Slot kStarted{2048, 256};
constexpr Slot kEnd{2304, 1536};
constexpr Slot kCleaned{3840, 256};
static_assert(kCleaned.offset + kCleaned.size == kRecordSize);

std::string framed(const Slot& slot, std::string_view payload) {
  if (kSlotHeader + payload.size() > slot.size) return {};
  std::string bytes(kSlotHeader, '\0');
  const std::uint64_t length = payload.size();
  const std::uint64_t checksum = base::hash64(payload, slot.offset);
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + 8, &checksum, sizeof checksum);
  bytes.append(payload);
  return bytes;
}

// Returns the payload of a slot if its checksum holds.
std::optional<std::string_view> payload_of(std::string_view file, const Slot& slot) {
  if (file.size() != kRecordSize) return std::nullopt;
  std::uint64_t length = 0;
  std::uint64_t checksum = 0;
  std::memcpy(&length, file.data() + slot.offset, sizeof length);
  std::memcpy(&checksum, file.data() + slot.offset + 8, sizeof checksum);
  if (length == 0 || length > slot.size - kSlotHeader) return std::nullopt;
  const std::string_view payload = file.substr(slot.offset + kSlotHeader, length);
  if (base::hash64(payload, slot.offset) != checksum) return std::nullopt;
  return payload;
}

std::uint32_t get_u32(Decoder& in) {
  const std::uint64_t value = in.u64();
  if (value > UINT32_MAX) return static_cast<std::uint32_t>(in.reject());
  return static_cast<std::uint32_t>(value);
}

std::uint8_t get_below(Decoder& in, std::uint64_t limit) {
  const std::uint64_t value = in.u64();
  if (value >= limit) return static_cast<std::uint8_t>(in.reject());
  return static_cast<std::uint8_t>(value);
}

void put_fields(Encoder& out, const StartedRecord& started) {
  out.u64(started.pid);
  out.i64(started.at.unix_ns());
  out.u64(started.start_ticks);
}

StartedRecord get_started(Decoder& in) {
  StartedRecord started;
  started.pid = get_u32(in);
  started.at = base::Instant(in.i64());
  started.start_ticks = in.u64();
  return started;
}

void put_fields(Encoder& out, const EndRecord& end) {
  out.u64(static_cast<std::uint64_t>(end.kind));
  out.u64(end.value);
  out.u64(static_cast<std::uint64_t>(end.cause));
  out.u64(end.stop_code);
  if (end.cause == EndCause::kTimeLimit) out.i64(end.time_limit.value());
  out.i64(end.at.unix_ns());
  out.i64(end.cpu_time.value());
  out.i64(end.peak_memory.value());
}

EndRecord get_end(Decoder& in) {
  EndRecord end;
  end.kind = static_cast<EndKind>(get_below(in, 3));
  end.value = get_below(in, 256);
  end.cause = static_cast<EndCause>(get_below(in, kEndCauses));
  end.stop_code = get_below(in, 256);
  if (end.cause == EndCause::kTimeLimit) end.time_limit = base::Duration(in.i64());
  end.at = base::Instant(in.i64());
  end.cpu_time = base::Duration(in.i64());
  end.peak_memory = base::Bytes(in.i64());
  return end;
}

bool tells_of_a_process(Notice::Kind kind) {
  return kind == Notice::Kind::kStarted || kind == Notice::Kind::kEntered;
}

std::optional<Beginning> decode_beginning(std::string_view payload) {
  Decoder in(payload);
  if (in.u64() != kFormat) return std::nullopt;
  Beginning beginning;
  beginning.attempt.job = model::JobId(in.u64());
  beginning.attempt.attempt = get_u32(in);
  beginning.boot_id = in.text();
  beginning.supervisor_pid = get_u32(in);
  beginning.supervisor_ticks = in.u64();
  beginning.uid = get_u32(in);
  beginning.cgroup = in.text();
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return beginning;
}

std::optional<EndRecord> decode_end(std::string_view payload) {
  Decoder in(payload);
  EndRecord end = get_end(in);
  end.detail = in.text();
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return end;
}

}  // namespace

std::string encode_new_record(const Beginning& beginning) {
  std::string payload;
  Encoder out(payload);
  out.u64(kFormat);
  out.u64(beginning.attempt.job.value);
  out.u64(beginning.attempt.attempt);
  out.text(beginning.boot_id);
  out.u64(beginning.supervisor_pid);
  out.u64(beginning.supervisor_ticks);
  out.u64(beginning.uid);
  out.text(beginning.cgroup);
  std::string file = framed(kBeginning, payload);
  file.resize(kRecordSize, '\0');
  return file;
}

SlotBytes encode_slot(const StartedRecord& started) {
  std::string payload;
  Encoder out(payload);
  put_fields(out, started);
  return {kStarted.offset, framed(kStarted, payload)};
}

SlotBytes encode_slot(const EndRecord& end) {
  std::string payload;
  Encoder out(payload);
  put_fields(out, end);
  out.text(std::string_view(end.detail).substr(0, kMaxDetail));
  return {kEnd.offset, framed(kEnd, payload)};
}

SlotBytes encode_slot(const CleanedRecord& cleaned) {
  std::string payload;
  Encoder out(payload);
  out.i64(cleaned.at.unix_ns());
  out.text(std::string_view(cleaned.epilog_failure).substr(0, kMaxEpilogFailure));
  return {kCleaned.offset, framed(kCleaned, payload)};
}

Record decode_record(std::string_view file) {
  Record record;
  if (const auto payload = payload_of(file, kBeginning)) {
    record.beginning = decode_beginning(*payload);
  }
  if (const auto payload = payload_of(file, kStarted)) {
    Decoder in(*payload);
    const StartedRecord started = get_started(in);
    if (in.ok() && in.at_end()) record.started = started;
  }
  if (const auto payload = payload_of(file, kEnd)) record.end = decode_end(*payload);
  if (const auto payload = payload_of(file, kCleaned)) {
    Decoder in(*payload);
    CleanedRecord cleaned{base::Instant(in.i64()), {}};
    if (!in.at_end()) cleaned.epilog_failure = in.text();  // records of earlier versions end here
    if (in.ok() && in.at_end()) record.cleaned = cleaned;
  }
  return record;
}

std::string encode_notice(const Notice& notice) {
  std::string payload;
  Encoder out(payload);
  out.u64(kFormat);
  out.u64(static_cast<std::uint64_t>(notice.kind));
  out.u64(notice.attempt.job.value);
  out.u64(notice.attempt.attempt);
  if (tells_of_a_process(notice.kind)) put_fields(out, notice.started);
  out.boolean(notice.ended_too);
  if (notice.kind == Notice::Kind::kEnded || notice.ended_too) put_fields(out, notice.end);
  out.boolean(notice.has_detail);
  out.boolean(notice.epilog_failed);
  std::string frame(1, static_cast<char>(payload.size()));
  frame += payload;
  frame.resize(kNoticeSize, '\0');
  return frame;
}

std::optional<Notice> decode_notice(std::string_view frame) {
  if (frame.size() != kNoticeSize) return std::nullopt;
  const auto length = static_cast<unsigned char>(frame.front());
  if (length >= kNoticeSize) return std::nullopt;
  Decoder in(frame.substr(1, length));
  if (in.u64() != kFormat) return std::nullopt;
  Notice notice;
  notice.kind = static_cast<Notice::Kind>(get_below(in, kNoticeKinds));
  notice.attempt.job = model::JobId(in.u64());
  notice.attempt.attempt = get_u32(in);
  if (tells_of_a_process(notice.kind)) notice.started = get_started(in);
  notice.ended_too = in.boolean();
  if (notice.kind == Notice::Kind::kEnded || notice.ended_too) notice.end = get_end(in);
  notice.has_detail = in.boolean();
  if (!in.at_end()) notice.epilog_failed = in.boolean();
  if (!in.ok() || !in.at_end() || !notice.attempt.job.valid()) return std::nullopt;
  return notice;
}

}  // namespace gpu_platform::node
