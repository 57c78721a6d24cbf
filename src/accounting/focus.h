#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accounting/exact_cost.h"
#include "base/month.h"
#include "base/units.h"
#include "model/ledger.h"

// A month of the ledger as rows of FOCUS, the FinOps Foundation's format of bills. An origin charge
// is the time of one GPU on one day at one price. Its rows are the parts into which it is split: by
// attempts, and by what became of the other time, which the site bears. Jobs without GPUs have rows
// of their own for cores and memory, and so has each correction.
//
// The rows of an origin charge add up to it: cost, quantity and ratio. Each of them is rounded
// once, and what is left goes to the next row.

namespace gpu_platform::accounting {

enum class FocusVersion : std::uint8_t {
  k1_2,  // without the columns of split charges: what is allocated is in Tags
  k1_3,
  k1_4,  // without ProviderName and PublisherName
};
inline constexpr std::size_t kFocusVersions = 3;
std::string_view to_string(FocusVersion version);  // "1.3"
std::optional<FocusVersion> parse_focus_version(std::string_view text);

struct FocusQuestion {
  base::Month month;
  FocusVersion version = FocusVersion::k1_3;
  std::string account;   // the billing account: a name of the site
  std::string currency;  // "USD"
};

// What a row is of.
enum class FocusCharge : std::uint8_t {
  kGpu,
  kCores,
  kMemory,
  kCorrection,
};

// What became of a time.
enum class FocusPart : std::uint8_t {
  kUsed,
  kStarting,  // the site bears this and what follows
  kCleaning,
  kRest,
};

// The origin charge: what its rows have in common.
struct FocusOrigin {
  model::Millis day = 0;  // its begin, in UTC; of a correction: its moment
  FocusCharge charge = FocusCharge::kGpu;
  std::string node;
  std::string gpu_uuid;
  std::string gpu_type;
  model::CapacityClass capacity = model::CapacityClass::kOnDemand;
  std::uint32_t price = 0;    // PriceEntry::id; 0: there was none
  base::MicroUsd unit_price;  // without a price: 0
  std::string job;            // of cores and memory
  std::uint64_t number = 0;   // of a correction: its place among all

  friend auto operator<=>(const FocusOrigin&, const FocusOrigin&) = default;
};

// Who or what a part of it is allocated to.
struct FocusShare {
  FocusPart part = FocusPart::kUsed;
  model::NotBilled not_billed = model::NotBilled::kBilled;
  model::RestKind rest = model::RestKind::kIdle;
  std::string job;  // "42", "40_3"; empty: none
  std::uint32_t attempt = 0;

  friend auto operator<=>(const FocusShare&, const FocusShare&) = default;
};

// A line of the ledger, with what it only points to.
struct FocusLine {
  model::LedgerLine line;
  std::string job;                         // as people call it: "42", "40_3"
  std::optional<base::MicroUsd> per_hour;  // none: it has no price
};

struct FocusRow {
  FocusOrigin origin;
  FocusShare share;
  bool is_priced = true;
  // Of the attempt, or of a correction.
  std::string user;
  std::string team;
  std::string project;
  std::string job_name;
  std::vector<model::Label> labels;
  std::string text;  // of a correction
  // Before rounding.
  __int128 time = 0;  // share × ms, cores × ms or MiB × ms
  ExactCost list_exact;
  ExactCost billed_exact;
  // After it.
  base::MicroUsd list;
  base::MicroUsd billed;
  std::int64_t nano_quantity = 0;  // billionths of an hour
  std::int64_t nano_ratio = 0;     // billionths of the origin charge

  // The site bears it, and no job: the job's time that is not billed, too.
  bool is_of_site() const;
};

// Takes lines of attempts and GPUs that are over, and of these what lies in the month. Memory:
// about 1 KiB for each row: a GPU has one for each attempt and kind of rest of a day.
class FocusSum {
 public:
  explicit FocusSum(const FocusQuestion& question);

  void add(const FocusLine& line);
  // By day, then node, GPU and price.
  std::vector<FocusRow> rows() const;

 private:
  struct Piece {
    FocusPart part = FocusPart::kUsed;
    model::Millis from = 0;
    model::Millis to = 0;
  };
  void add_gpu(const FocusLine& line, Piece piece);
  void add_host(const FocusLine& line, FocusCharge charge);
  void add_correction(const FocusLine& line);
  FocusRow& row_of(const FocusOrigin& origin, const FocusShare& share, const FocusLine& line);

  model::Millis from_ = 0;
  model::Millis to_ = 0;
  std::uint64_t corrections_ = 0;
  std::map<FocusOrigin, std::map<FocusShare, FocusRow>> rows_;
};

// A row of names, and one for each row (RFC 4180). A text that a spreadsheet would take for a
// formula begins with an apostrophe.
std::string focus_csv(const FocusQuestion& question, const std::vector<FocusRow>& rows);

}  // namespace gpu_platform::accounting
