#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hardware/readings.h"

// Reads the output of nvidia-smi. Pure: texts in, readings out. A value that nvidia-smi marks as
// unavailable ("N/A", "[Not Supported]", "[Unknown Error]", …), or that is not what its place asks
// for, is not known; only a text that as a whole is not nvidia-smi's is an error.

namespace gpu_platform::hardware {

// One value: "81559 MiB", "71.25 W", "16x", "450 KB/s", "Enabled".
std::optional<std::uint64_t> smi_count(std::string_view text);   // of any unit
std::optional<std::uint32_t> smi_number(std::string_view text);  // the same, below 2^32
std::optional<base::Bytes> smi_bytes(std::string_view text);     // MiB
std::optional<base::Milliwatts> smi_watts(std::string_view text);
std::optional<bool> smi_switch(std::string_view text);  // Enabled, Disabled, Yes, No
std::optional<std::string> smi_text(std::string_view text);

// A table of --format=csv with its header. Columns are found by name without unit, so their order
// and number do not matter; a row of another length than the header makes the table an error.
class SmiTable {
 public:
  static base::Result<SmiTable> parse(std::string_view text);

  std::size_t rows() const { return rows_.size(); }
  // Empty where there is no such column.
  std::string_view at(std::size_t row, std::string_view column) const;

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Columns that the functions below ask for, comma separated, for --query-gpu.
extern const std::string_view kSmiDescriptionColumns;
extern const std::string_view kSmiReadingColumns;
extern const std::string_view kSmiProcessColumns;  // for --query-compute-apps

std::vector<GpuDescription> smi_descriptions(const SmiTable& gpus);
// `processes` have their GPUs' UUIDs; a GPU without a row there runs none.
std::vector<GpuReading> smi_readings(const SmiTable& gpus, const SmiTable& processes);

// The column that a refusal complains of ("Field "x" is not a valid field to query."), else empty.
std::string smi_refused_column(std::string_view text);

}  // namespace gpu_platform::hardware
