#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "store/sqlite/database.h"
#include "telemetry/points.h"

// The tables of the history's file:
//
//   subjects  each GPU, host and use of a GPU, with a number
//   names     each metric's name, with the number that blocks have in its place
//   blocks    the readings: a block (telemetry/block.h) of one subject, tier and span
//   notes     telemetry::Notes
//   facts     single numbers: "batch", the last batch of frames that is in the file
//
// A row of blocks is a *piece* as long as more of its span may come; later the pieces of a span
// become one whole row. The points of minutes and quarters are made of raw pieces at that moment:
// what is in a raw piece is in no point yet, and what is in a whole raw row is in the points.

namespace gpu_platform::telemetry {

inline constexpr std::int64_t kHistoryVersion = 1;

// As the tier is in the rows.
inline std::int64_t number_of(Tier tier) {
  return static_cast<std::int64_t>(tier);
}
// The length of the spans of a tier's rows, which begin at whole multiples of it since 1970.
base::Duration span_of(Tier tier);
// Times before 1970 and after 2200 are not believed, in readings or in a file: the nearer of these.
base::Instant believed(base::Instant at);
// The begin of the span of this length that has the moment, as far as that is believed.
base::Instant floor_to(base::Instant at, base::Duration length);

// Opens the history's file, which is made (0600) where there is none. kDataLoss: it is damaged, or
// of a later version of the program; put_aside() helps.
base::Result<store::Database> open_history(const std::filesystem::path& path);

// Whether the file has its tables yet: a new one has none. kDataLoss as of open_history().
base::Result<bool> check_form(const store::Database& database);

// Renames the file, and what SQLite has beside it, to PATH.damaged-1, -2 or -3: the first that is
// free, else the last. No connection to it may be in use for writing. Returns the new path.
base::Result<std::string> put_aside(const std::filesystem::path& path);

}  // namespace gpu_platform::telemetry
