#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/event.h"

// The stored form of one batch, the same in every implementation: records one after another
// (model/codec.h) under one checksum that also covers the batch's place in the journal.

namespace gpu_platform::store {

// Refuses a batch that is empty, has gaps, or does not follow `last`.
base::Status check_follows(model::EventSeq last, std::span<const model::EventRecord> events);

std::string encode_batch(std::span<const model::EventRecord> events);

// Returns the checksum of a batch of `count` events that begins with event `first_seq`.
std::uint64_t batch_checksum(std::uint64_t first_seq, std::uint64_t count,
                             std::string_view payload);

// Returns the checksum of the snapshot taken after event `upto`.
std::uint64_t snapshot_checksum(std::uint64_t upto, std::string_view state);

struct StoredBatch {
  std::uint64_t first_seq = 0;
  std::uint64_t count = 0;
  std::uint64_t checksum = 0;
  std::string_view payload;

  std::uint64_t last_seq() const { return first_seq + count - 1; }
};

// Calls visit for each event of the batch with a seq greater than `after`, in order, until it
// returns an error, which is passed on. kDataLoss, with a message that names the record, when the
// checksum does not hold (nothing has been visited then) or the events are not those that the
// batch's place demands.
base::Status visit_batch(const StoredBatch& batch, model::EventSeq after,
                         const std::function<base::Status(const model::EventRecord&)>& visit);

}  // namespace gpu_platform::store
