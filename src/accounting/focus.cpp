#include "accounting/focus.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "accounting/amount_text.h"
#include "accounting/monthly_documents.h"
#include "base/check.h"
#include "base/utc.h"

namespace gpu_platform::accounting {

namespace {

constexpr model::Millis kFocusHour = 3'600'000;
constexpr model::Millis kFocusDay = 24 * kFocusHour;
constexpr std::int64_t kBillion = 1'000'000'000;
constexpr std::string_view kPlatform = "gpu-platform";
// Before the tags that the platform gives, so that they differ from labels.
constexpr std::string_view kTagPrefix = "gpu-platform/";
constexpr std::string_view kMethod = "gpu-time-exact";

model::Millis day_of(model::Millis at) {
  return at - at % kFocusDay;
}

// Splits whole numbers so that the rounded parts add up to the rounded whole.
class QuotientRounder {
 public:
  // part × factor ÷ divisor.
  explicit QuotientRounder(__int128 factor, __int128 divisor)
      : factor_(factor), divisor_(divisor) {}

  std::int64_t next(__int128 part) {
    exact_ += part;
    const __int128 total = (exact_ * factor_ + divisor_ / 2) / divisor_;
    const auto given = static_cast<std::int64_t>(total - given_);
    given_ = total;
    return given;
  }

 private:
  __int128 factor_;
  __int128 divisor_;
  __int128 exact_ = 0;
  __int128 given_ = 0;
};

// So much of FocusRow::time is an hour of one unit.
__int128 hour_of(FocusCharge charge) {
  switch (charge) {
    case FocusCharge::kGpu:
      return static_cast<__int128>(base::kWholeGpu.value()) * kFocusHour;
    case FocusCharge::kMemory:
      return static_cast<__int128>(1024) * kFocusHour;
    case FocusCharge::kCores:
    case FocusCharge::kCorrection:
      return kFocusHour;
  }
  return kFocusHour;
}

std::string nine_decimals(std::int64_t billionths) {
  return fmt::format("{}.{:09}", billionths / kBillion, billionths % kBillion);
}

std::string time_text(model::Millis at) {
  return base::utc(base::Instant(at * 1'000'000));
}

// Rounds the rows of one origin charge.
void round_rows(std::map<FocusShare, FocusRow>& rows) {
  __int128 whole = 0;
  for (const auto& [share, row] : rows) whole += row.time;
  Rounder list;
  Rounder billed;
  QuotientRounder quantity(kBillion, hour_of(rows.begin()->second.origin.charge));
  QuotientRounder ratio(kBillion, std::max<__int128>(whole, 1));
  for (auto& [share, row] : rows) {
    row.list = list.next(row.list_exact);
    row.billed = billed.next(row.billed_exact);
    row.nano_quantity = quantity.next(row.time);
    row.nano_ratio = ratio.next(row.time);
  }
}

// ---- texts of a row

bool is_correction(const FocusRow& row) {
  return row.origin.charge == FocusCharge::kCorrection;
}

bool is_gpu(const FocusRow& row) {
  return row.origin.charge == FocusCharge::kGpu;
}

// What bears the row if it is the site.
std::string site_reason(const FocusRow& row) {
  switch (row.share.part) {
    case FocusPart::kUsed:
      return "not-billed";
    case FocusPart::kStarting:
      return "starting";
    case FocusPart::kCleaning:
      return "cleaning";
    case FocusPart::kRest:
      return std::string(to_string(row.share.rest));
  }
  return {};
}

std::string_view unit_of(const FocusRow& row) {
  switch (row.origin.charge) {
    case FocusCharge::kGpu:
      return "GPU-Hours";
    case FocusCharge::kCores:
      return "Core-Hours";
    case FocusCharge::kMemory:
      return "GiB-Hours";
    case FocusCharge::kCorrection:
      return "";
  }
  return "";
}

std::string description_of(const FocusRow& row) {
  const FocusOrigin& origin = row.origin;
  switch (origin.charge) {
    case FocusCharge::kGpu:
      return fmt::format("{} on {}, {}{}", origin.gpu_type, origin.node, to_string(origin.capacity),
                         row.is_priced ? "" : ", without a price");
    case FocusCharge::kCores:
      return fmt::format("Cores on {}", origin.node);
    case FocusCharge::kMemory:
      return fmt::format("Memory on {}", origin.node);
    case FocusCharge::kCorrection:
      return row.text.empty() ? "Correction" : fmt::format("Correction: {}", row.text);
  }
  return {};
}

std::string sku_of(const FocusRow& row) {
  if (is_correction(row)) return {};
  if (!is_gpu(row)) return row.origin.charge == FocusCharge::kCores ? "core" : "memory";
  return fmt::format("{}/{}", row.origin.gpu_type, to_string(row.origin.capacity));
}

std::string sku_price_of(const FocusRow& row) {
  if (is_correction(row)) return {};
  if (!is_gpu(row))
    return fmt::format("{}/{}", sku_of(row), six_decimals(row.origin.unit_price.value()));
  if (!row.is_priced) return {};
  return fmt::format("price-{}", row.origin.price);
}

std::string resource_of(const FocusRow& row) {
  if (is_correction(row)) return {};
  return is_gpu(row) ? row.origin.gpu_uuid : fmt::format("job/{}", row.origin.job);
}

std::string origin_id(const FocusRow& row) {
  const FocusOrigin& origin = row.origin;
  const std::string day = time_text(origin.day).substr(0, 10);
  if (is_correction(row)) return fmt::format("{}/correction/{}", day, origin.number);
  const std::string price = row.is_priced ? sku_price_of(row) : "unpriced";
  return fmt::format("{}/{}/{}/{}", day, origin.node, resource_of(row), price);
}

// An object of JSON; empty if there is nothing in it.
class TagsText {
 public:
  void put(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    text_ += fmt::format("{}{}: {}", text_.empty() ? "{" : ", ", json_text(key), json_text(value));
  }
  void put_own(std::string_view key, std::string_view value) {
    put(fmt::format("{}{}", kTagPrefix, key), value);
  }
  std::string take() && { return text_.empty() ? text_ : std::move(text_) + "}"; }

 private:
  std::string text_;
};

// What the row is allocated to. A job's time that the site bears keeps the job's tags.
std::string share_tags(const FocusRow& row) {
  TagsText tags;
  tags.put_own("team", row.team);
  tags.put_own("project", row.project);
  tags.put_own("user", row.user);
  tags.put_own("job", row.share.job);
  tags.put_own("job-name", row.job_name);
  if (row.is_of_site()) tags.put_own("site", site_reason(row));
  for (const model::Label& label : row.labels) {
    if (!label.key.starts_with(kTagPrefix)) tags.put(label.key, label.value);
  }
  return std::move(tags).take();
}

std::string resource_tags(const FocusRow& row) {
  TagsText tags;
  tags.put_own("node", row.origin.node);
  return std::move(tags).take();
}

// ---- columns

// What a cell is made of.
struct FocusCell {
  const FocusQuestion& question;
  const FocusRow& row;

  // The columns of split charges are there.
  bool splits() const { return question.version != FocusVersion::k1_2; }
};

struct FocusColumn {
  std::string_view name;
  FocusVersion since;
  FocusVersion until;
  // Null is an empty cell.
  std::string (*text)(const FocusCell& cell);
};

std::string text_cell(std::string_view text) {
  return csv_text(text);
}

std::string platform_cell(const FocusCell&) {
  return std::string(kPlatform);
}
std::string unit_price_cell(const FocusCell& cell) {
  return is_correction(cell.row) ? "" : six_decimals(cell.row.origin.unit_price.value());
}
std::string quantity_cell(const FocusCell& cell) {
  return is_correction(cell.row) ? "" : nine_decimals(cell.row.nano_quantity);
}
std::string unit_cell(const FocusCell& cell) {
  return std::string(unit_of(cell.row));
}
std::string list_cell(const FocusCell& cell) {
  return six_decimals(cell.row.list.value());
}
std::string billed_cell(const FocusCell& cell) {
  return six_decimals(cell.row.billed.value());
}
std::string account_cell(const FocusCell& cell) {
  return text_cell(cell.question.account);
}
std::string currency_cell(const FocusCell& cell) {
  return text_cell(cell.question.currency);
}

std::string method_details(const FocusCell& cell) {
  if (!is_gpu(cell.row)) return {};
  return text_cell(fmt::format(
      R"({{"Elements": [{{"AllocatedRatio": {}, "UsageUnit": "GPU-Hours", "UsageQuantity": {}}}]}})",
      nine_decimals(cell.row.nano_ratio), nine_decimals(cell.row.nano_quantity)));
}

std::string allocated_id(const FocusCell& cell) {
  if (!is_gpu(cell.row)) return {};
  if (cell.row.is_of_site()) return fmt::format("site/{}", site_reason(cell.row));
  return text_cell(fmt::format("job/{}", cell.row.share.job));
}

std::string allocated_name(const FocusCell& cell) {
  if (!is_gpu(cell.row)) return {};
  return cell.row.is_of_site() ? site_reason(cell.row) : text_cell(cell.row.job_name);
}

std::string period_begin(const FocusCell& cell) {
  const FocusOrigin& origin = cell.row.origin;
  return time_text(is_correction(cell.row) ? day_of(origin.day) : origin.day);
}

std::string period_end(const FocusCell& cell) {
  return time_text(day_of(cell.row.origin.day) + kFocusDay);
}

std::string tags_cell(const FocusCell& cell) {
  // Where charges are split, the tags are those of the resource, which all its rows share.
  const bool is_shared = cell.splits() && is_gpu(cell.row);
  return text_cell(is_shared ? resource_tags(cell.row) : share_tags(cell.row));
}

// The same: a team is a dimension, in which the rows of an origin charge may not differ.
std::string sub_account(const FocusCell& cell) {
  const bool is_shared = cell.splits() && is_gpu(cell.row);
  return is_shared || cell.row.is_of_site() ? "" : text_cell(cell.row.team);
}

std::string price_details(const FocusCell& cell) {
  if (!is_gpu(cell.row) || !cell.row.is_priced) return {};
  return text_cell(
      fmt::format(R"({{"GpuCount": 1, "InstanceType": {}}})", json_text(cell.row.origin.gpu_type)));
}

constexpr FocusVersion kOldest = FocusVersion::k1_2;
constexpr FocusVersion kNewest = FocusVersion::k1_4;

// By name, as it is customary.
constexpr std::array kFocusColumns = {
    FocusColumn{"AllocatedMethodDetails", FocusVersion::k1_3, kNewest, method_details},
    FocusColumn{"AllocatedMethodId", FocusVersion::k1_3, kNewest,
                [](const FocusCell& cell) { return std::string(is_gpu(cell.row) ? kMethod : ""); }},
    FocusColumn{"AllocatedResourceId", FocusVersion::k1_3, kNewest, allocated_id},
    FocusColumn{"AllocatedResourceName", FocusVersion::k1_3, kNewest, allocated_name},
    FocusColumn{"AllocatedTags", FocusVersion::k1_3, kNewest,
                [](const FocusCell& cell) {
                  return is_gpu(cell.row) ? text_cell(share_tags(cell.row)) : "";
                }},
    FocusColumn{"BilledCost", kOldest, kNewest, billed_cell},
    FocusColumn{"BillingAccountId", kOldest, kNewest, account_cell},
    FocusColumn{"BillingAccountName", kOldest, kNewest, account_cell},
    FocusColumn{"BillingAccountType", kOldest, kNewest,
                [](const FocusCell&) { return std::string("Site"); }},
    FocusColumn{"BillingCurrency", kOldest, kNewest, currency_cell},
    FocusColumn{"BillingPeriodEnd", kOldest, kNewest,
                [](const FocusCell& cell) { return base::utc(base::end_of(cell.question.month)); }},
    FocusColumn{
        "BillingPeriodStart", kOldest, kNewest,
        [](const FocusCell& cell) { return base::utc(base::begin_of(cell.question.month)); }},
    FocusColumn{"ChargeCategory", kOldest, kNewest,
                [](const FocusCell& cell) {
                  return std::string(is_correction(cell.row) ? "Adjustment" : "Usage");
                }},
    FocusColumn{"ChargeClass", kOldest, kNewest,
                [](const FocusCell& cell) {
                  return std::string(is_correction(cell.row) ? "Correction" : "");
                }},
    FocusColumn{"ChargeDescription", kOldest, kNewest,
                [](const FocusCell& cell) { return text_cell(description_of(cell.row)); }},
    FocusColumn{"ChargeFrequency", kOldest, kNewest,
                [](const FocusCell& cell) {
                  return std::string(is_correction(cell.row) ? "One-Time" : "Usage-Based");
                }},
    FocusColumn{"ChargePeriodEnd", kOldest, kNewest, period_end},
    FocusColumn{"ChargePeriodStart", kOldest, kNewest, period_begin},
    FocusColumn{"ConsumedQuantity", kOldest, kNewest, quantity_cell},
    FocusColumn{"ConsumedUnit", kOldest, kNewest, unit_cell},
    FocusColumn{"ContractedCost", kOldest, kNewest, list_cell},
    FocusColumn{"ContractedUnitPrice", kOldest, kNewest, unit_price_cell},
    FocusColumn{"EffectiveCost", kOldest, kNewest, billed_cell},
    FocusColumn{"HostProviderName", FocusVersion::k1_3, kNewest, platform_cell},
    // There are no invoices, and the column must be there.
    FocusColumn{"InvoiceId", kOldest, kNewest, [](const FocusCell&) { return std::string(); }},
    FocusColumn{"InvoiceIssuerName", kOldest, kNewest, platform_cell},
    FocusColumn{"ListCost", kOldest, kNewest, list_cell},
    FocusColumn{"ListUnitPrice", kOldest, kNewest, unit_price_cell},
    FocusColumn{"PricingCategory", kOldest, kNewest,
                [](const FocusCell& cell) {
                  if (is_correction(cell.row)) return std::string();
                  const bool is_spot = cell.row.origin.capacity == model::CapacityClass::kSpot;
                  return std::string(is_spot ? "Dynamic" : "Standard");
                }},
    FocusColumn{"PricingQuantity", kOldest, kNewest, quantity_cell},
    FocusColumn{"PricingUnit", kOldest, kNewest, unit_cell},
    FocusColumn{"ProviderName", kOldest, FocusVersion::k1_3, platform_cell},
    FocusColumn{"PublisherName", kOldest, FocusVersion::k1_3, platform_cell},
    FocusColumn{"ResourceId", kOldest, kNewest,
                [](const FocusCell& cell) { return text_cell(resource_of(cell.row)); }},
    FocusColumn{"ResourceName", kOldest, kNewest,
                [](const FocusCell& cell) {
                  return text_cell(is_gpu(cell.row) ? cell.row.origin.gpu_uuid : cell.row.job_name);
                }},
    FocusColumn{"ResourceType", kOldest, kNewest,
                [](const FocusCell& cell) {
                  if (is_correction(cell.row)) return std::string();
                  return std::string(is_gpu(cell.row) ? "GPU" : "Job");
                }},
    FocusColumn{"ServiceCategory", kOldest, kNewest,
                [](const FocusCell&) { return std::string("Compute"); }},
    FocusColumn{"ServiceName", kOldest, kNewest,
                [](const FocusCell&) { return std::string("GPU cluster"); }},
    FocusColumn{"ServiceProviderName", FocusVersion::k1_3, kNewest, platform_cell},
    FocusColumn{"ServiceSubcategory", kOldest, kNewest,
                [](const FocusCell&) { return std::string("Other (Compute)"); }},
    FocusColumn{"SkuId", kOldest, kNewest,
                [](const FocusCell& cell) { return text_cell(sku_of(cell.row)); }},
    FocusColumn{"SkuMeter", kOldest, kNewest,
                [](const FocusCell& cell) {
                  if (is_correction(cell.row)) return std::string();
                  return fmt::format("{} held", unit_of(cell.row));
                }},
    FocusColumn{"SkuPriceDetails", kOldest, kNewest, price_details},
    FocusColumn{"SkuPriceId", kOldest, kNewest,
                [](const FocusCell& cell) { return text_cell(sku_price_of(cell.row)); }},
    FocusColumn{"SubAccountId", kOldest, kNewest, sub_account},
    FocusColumn{"SubAccountName", kOldest, kNewest, sub_account},
    FocusColumn{
        "SubAccountType", kOldest, kNewest,
        [](const FocusCell& cell) { return std::string(sub_account(cell).empty() ? "" : "Team"); }},
    FocusColumn{"Tags", kOldest, kNewest, tags_cell},
    FocusColumn{"x_Attempt", kOldest, kNewest,
                [](const FocusCell& cell) {
                  const FocusShare& share = cell.row.share;
                  return share.job.empty() ? std::string() : fmt::to_string(share.attempt);
                }},
    FocusColumn{"x_IdleReason", kOldest, kNewest,
                [](const FocusCell& cell) {
                  const bool is_rest = cell.row.share.part == FocusPart::kRest;
                  return is_rest ? site_reason(cell.row) : std::string();
                }},
    FocusColumn{"x_JobId", kOldest, kNewest,
                [](const FocusCell& cell) { return text_cell(cell.row.share.job); }},
    FocusColumn{"x_NotBilledReason", kOldest, kNewest,
                [](const FocusCell& cell) {
                  const model::NotBilled why = cell.row.share.not_billed;
                  const bool is_billed = why == model::NotBilled::kBilled;
                  return is_billed ? std::string() : std::string(to_string(why));
                }},
    FocusColumn{"x_OriginChargeId", kOldest, kNewest,
                [](const FocusCell& cell) { return text_cell(origin_id(cell.row)); }},
    FocusColumn{"x_Project", kOldest, kNewest,
                [](const FocusCell& cell) { return text_cell(cell.row.project); }},
    FocusColumn{"x_Team", kOldest, kNewest,
                [](const FocusCell& cell) { return text_cell(cell.row.team); }},
    FocusColumn{
        "x_Unpriced", kOldest, kNewest,
        [](const FocusCell& cell) { return std::string(cell.row.is_priced ? "false" : "true"); }},
    FocusColumn{"x_User", kOldest, kNewest,
                [](const FocusCell& cell) { return text_cell(cell.row.user); }},
};

constexpr std::array<std::string_view, kFocusVersions> kFocusVersionNames = {"1.2", "1.3", "1.4"};

}  // namespace

std::string_view to_string(FocusVersion version) {
  return kFocusVersionNames[static_cast<std::size_t>(version)];
}

std::optional<FocusVersion> parse_focus_version(std::string_view text) {
  const auto found = std::ranges::find(kFocusVersionNames, text);
  if (found == kFocusVersionNames.end()) return std::nullopt;
  return static_cast<FocusVersion>(found - kFocusVersionNames.begin());
}

bool FocusRow::is_of_site() const {
  if (origin.charge == FocusCharge::kCorrection) return false;
  return share.part != FocusPart::kUsed || share.not_billed != model::NotBilled::kBilled;
}

FocusSum::FocusSum(const FocusQuestion& question)
    : from_(model::millis_of(base::begin_of(question.month))),
      to_(model::millis_of(base::end_of(question.month))) {}

void FocusSum::add(const FocusLine& line) {
  const model::LedgerLine& ledger = line.line;
  switch (ledger.kind) {
    case model::LedgerKind::kHeld:
      if (ledger.gpu_uuid.empty()) {
        add_host(line, FocusCharge::kCores);
        add_host(line, FocusCharge::kMemory);
        return;
      }
      add_gpu(line, {FocusPart::kStarting, ledger.from, ledger.started});
      add_gpu(line, {FocusPart::kUsed, ledger.started, ledger.ended});
      add_gpu(line, {FocusPart::kCleaning, ledger.ended, ledger.to});
      return;
    case model::LedgerKind::kRest:
      add_gpu(line, {FocusPart::kRest, ledger.from, ledger.to});
      return;
    case model::LedgerKind::kCorrection:
      add_correction(line);
      return;
  }
}

void FocusSum::add_gpu(const FocusLine& line, Piece piece) {
  const model::LedgerLine& ledger = line.line;
  FocusOrigin origin{.node = ledger.node,
                     .gpu_uuid = ledger.gpu_uuid,
                     .gpu_type = ledger.gpu_type,
                     .capacity = ledger.capacity,
                     .price = line.per_hour ? ledger.price : 0};
  FocusShare share{.part = piece.part, .job = line.job, .attempt = ledger.attempt.attempt};
  if (piece.part == FocusPart::kUsed) share.not_billed = ledger.not_billed;
  if (piece.part == FocusPart::kRest) share.rest = ledger.rest;
  const base::MicroUsd per_hour = line.per_hour.value_or(base::MicroUsd());
  origin.unit_price = per_hour;
  const model::Millis end = std::min(piece.to, to_);
  for (model::Millis from = std::max(piece.from, from_); from < end;) {
    origin.day = day_of(from);
    const model::Millis to = std::min(origin.day + kFocusDay, end);
    FocusRow& row = row_of(origin, share, line);
    row.is_priced = line.per_hour.has_value();
    row.time += static_cast<__int128>(ledger.share.value()) * (to - from);
    row.list_exact += gpu_cost(ledger.share, to - from, per_hour);
    const std::uint32_t discount = row.is_of_site() ? 0 : ledger.discount;
    row.billed_exact += gpu_cost(ledger.share, to - from, per_hour, discount);
    from = to;
  }
}

// The cores, or the memory, of a job without GPUs, where they have a price.
void FocusSum::add_host(const FocusLine& line, FocusCharge charge) {
  const model::LedgerLine& ledger = line.line;
  const bool is_cores = charge == FocusCharge::kCores;
  const base::MicroUsd price = is_cores ? ledger.core_hour : ledger.gib_hour;
  const std::uint32_t cores = is_cores ? ledger.cpus : 0;
  const std::int64_t memory = is_cores ? 0 : ledger.memory_mib;
  if (price == base::MicroUsd()) return;
  FocusOrigin origin{.charge = charge, .node = ledger.node, .job = line.job};
  origin.capacity = ledger.capacity;
  origin.unit_price = price;
  const FocusShare share{
      .not_billed = ledger.not_billed, .job = line.job, .attempt = ledger.attempt.attempt};
  const model::Millis end = std::min(ledger.ended, to_);
  for (model::Millis from = std::max(ledger.started, from_); from < end;) {
    origin.day = day_of(from);
    const model::Millis to = std::min(origin.day + kFocusDay, end);
    FocusRow& row = row_of(origin, share, line);
    row.time += static_cast<__int128>(is_cores ? cores : memory) * (to - from);
    const auto cost = [&](std::uint32_t discount) {
      return cpu_cost(cores, ledger.core_hour, memory, ledger.gib_hour, to - from, discount);
    };
    row.list_exact += cost(0);
    row.billed_exact += cost(row.is_of_site() ? 0 : ledger.discount);
    from = to;
  }
}

void FocusSum::add_correction(const FocusLine& line) {
  const model::LedgerLine& ledger = line.line;
  if (ledger.from < from_ || ledger.from >= to_) return;
  const FocusOrigin origin{
      .day = ledger.from, .charge = FocusCharge::kCorrection, .number = ++corrections_};
  FocusRow& row = row_of(origin, {}, line);
  row.text = ledger.text;
  row.list_exact = ExactCost(ledger.amount);
  row.billed_exact = row.list_exact;
}

FocusRow& FocusSum::row_of(const FocusOrigin& origin, const FocusShare& share,
                           const FocusLine& line) {
  FocusRow& row = rows_[origin][share];
  if (row.origin == origin) return row;
  row.origin = origin;
  row.share = share;
  row.user = line.line.user;
  row.team = line.line.team;
  row.project = line.line.project;
  row.job_name = line.line.job_name;
  row.labels = line.line.labels;
  return row;
}

std::vector<FocusRow> FocusSum::rows() const {
  std::vector<FocusRow> all;
  for (const auto& [origin, rows] : rows_) {
    std::map<FocusShare, FocusRow> rounded = rows;
    round_rows(rounded);
    for (auto& [share, row] : rounded) all.push_back(std::move(row));
  }
  return all;
}

std::string focus_csv(const FocusQuestion& question, const std::vector<FocusRow>& rows) {
  std::vector<const FocusColumn*> columns;
  for (const FocusColumn& column : kFocusColumns) {
    if (column.since <= question.version && question.version <= column.until) {
      columns.push_back(&column);
    }
  }
  std::string out;
  const auto put_line = [&](auto text_of) {
    std::string_view separator;
    for (const FocusColumn* const column : columns) {
      out += separator;
      out += text_of(*column);
      separator = ",";
    }
    out += "\r\n";
  };
  put_line([](const FocusColumn& column) { return std::string(column.name); });
  for (const FocusRow& row : rows) {
    put_line([&](const FocusColumn& column) { return column.text({question, row}); });
  }
  return out;
}

}  // namespace gpu_platform::accounting
