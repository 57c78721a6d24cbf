#include "store/batch.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "model/codec.h"

namespace gpu_platform::store {

using base::ErrorCode;
using base::fail;

base::Status check_follows(model::EventSeq last, std::span<const model::EventRecord> events) {
  if (events.empty()) {
    return fail(ErrorCode::kInvalidArgument, "a batch without events cannot be stored");
  }
  std::uint64_t expected = last.value;
  for (const auto& record : events) {
    ++expected;
    if (record.seq.value != expected) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("event {} cannot be stored where event {} is due", record.seq.value,
                              expected));
    }
  }
  return {};
}

std::string encode_batch(std::span<const model::EventRecord> events) {
  std::string payload;
  for (const auto& record : events) model::append_record(record, payload);
  return payload;
}

std::uint64_t batch_checksum(std::uint64_t first_seq, std::uint64_t count,
                             std::string_view payload) {
  const std::uint64_t place[2] = {first_seq, count};
  const std::string_view place_bytes(reinterpret_cast<const char*>(place), sizeof place);
  return base::hash64(payload, base::hash64(place_bytes));
}

std::uint64_t snapshot_checksum(std::uint64_t upto, std::string_view state) {
  const std::string_view place_bytes(reinterpret_cast<const char*>(&upto), sizeof upto);
  return base::hash64(state, base::hash64(place_bytes));
}

namespace {

std::unexpected<base::Error> damaged_batch(const StoredBatch& batch, std::string_view what) {
  return fail(ErrorCode::kDataLoss, fmt::format("table journal, record {} ({} events): {}",
                                                batch.first_seq, batch.count, what));
}

}  // namespace

base::Status visit_batch(const StoredBatch& batch, model::EventSeq after,
                         const std::function<base::Status(const model::EventRecord&)>& visit) {
  if (batch.count == 0 ||
      batch.checksum != batch_checksum(batch.first_seq, batch.count, batch.payload)) {
    return damaged_batch(batch, "the checksum does not match");
  }
  std::uint64_t next = batch.first_seq;
  TRY(model::for_each_record(batch.payload, [&](const model::EventRecord& record) -> base::Status {
    if (record.seq.value != next) {
      return damaged_batch(
          batch, fmt::format("holds event {} where event {} is due", record.seq.value, next));
    }
    ++next;
    if (record.seq <= after) return {};
    return visit(record);
  }));
  if (next != batch.first_seq + batch.count) {
    return damaged_batch(batch, fmt::format("holds only {} events", next - batch.first_seq));
  }
  return {};
}

}  // namespace gpu_platform::store
