#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "store/sqlite/reader_pool.h"
#include "telemetry/history.h"

// Questions to the history's file, each on one connection and within one ReadTransaction.

namespace gpu_platform::telemetry {

// The file as it is at one moment: what is written meanwhile is not seen. Ends with the object.
class ReadTransaction {
 public:
  static base::Result<ReadTransaction> begin(store::Reader& reader);
  ReadTransaction(ReadTransaction&& other) noexcept
      : reader_(std::exchange(other.reader_, nullptr)), batch_(other.batch_) {}
  ReadTransaction& operator=(ReadTransaction&&) = delete;
  ~ReadTransaction();

  store::Reader& reader() const { return *reader_; }
  // The last batch of frames that is in the file.
  std::uint64_t batch() const { return batch_; }

 private:
  explicit ReadTransaction(store::Reader& reader) : reader_(&reader) {}

  store::Reader* reader_;
  std::uint64_t batch_ = 0;
};

// kInvalidArgument if the window or the step is not one.
base::Status check_query(const HistoryQuery& query);

// Answers a checked query. `open`: the frames that are not in the file. `now`: the wall clock.
base::Result<std::vector<Series>> read_history(const ReadTransaction& file,
                                               std::span<const Frames> open,
                                               const HistoryQuery& query, base::Instant now);

// Since when the file has something of each tier.
struct HistoryReach {
  std::optional<base::Instant> raw_since;
  std::optional<base::Instant> minutes_since;
  std::optional<base::Instant> quarters_since;
};
base::Result<HistoryReach> read_reach(const ReadTransaction& file);

// The bytes of the newest span of the tier but one, which is complete; 0: there is none.
base::Result<std::uint64_t> bytes_of_newest_span(const ReadTransaction& file, Tier tier);

base::Result<std::optional<std::string>> read_note(const ReadTransaction& file,
                                                   const std::string& name);
base::Result<std::vector<Notes::Note>> read_notes(const ReadTransaction& file,
                                                  const std::string& prefix);

}  // namespace gpu_platform::telemetry
