#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "smi/reading.h"

namespace gpu_emulator {

class Gpu;

// What decides whether a GPU has a row.
struct RowFacts {
  unsigned int branch = 0;        // of the driver
  unsigned int architecture = 0;  // nvmlDeviceArchitecture_t
  bool tells_distances = false;   // to temperatures, in place of these
  bool remaps_rows = false;       // in place of retiring pages
  bool is_whole = true;           // no -d was given
};

// The sections that -d names.
enum Display : std::uint32_t {
  kOther = 1U << 0,  // in no section that -d names
  kMemoryDisplay = 1U << 1,
  kUtilizationDisplay = 1U << 2,
  kEccDisplay = 1U << 3,
  kTemperatureDisplay = 1U << 4,
  kPowerDisplay = 1U << 5,
  kClockDisplay = 1U << 6,
  kComputeDisplay = 1U << 7,
  kPidsDisplay = 1U << 8,
  kPerformanceDisplay = 1U << 9,
  kSupportedClocksDisplay = 1U << 10,
  kPageRetirementDisplay = 1U << 11,
  kAccountingDisplay = 1U << 12,
  kEncoderDisplay = 1U << 13,
  kVoltageDisplay = 1U << 14,
  kFbcDisplay = 1U << 15,
  kRowRemapperDisplay = 1U << 16,
  kResetDisplay = 1U << 17,
  kGspDisplay = 1U << 18,
  kFabricDisplay = 1U << 19,
};

enum class RowForm : std::uint8_t {
  kBoth,
  kText,     // in the text alone
  kXml,      // in the document alone
  kHex,      // the document leaves "0x" out
  kNothing,  // in the document alone: an element with the word None
};

struct ReportRow {
  int depth;                              // 1: of the GPU
  std::string_view label;                 // in the text
  std::string_view tag;                   // in the document
  Reading (*read)(const Gpu&) = nullptr;  // none: the rows below with a greater depth are of it
  std::uint32_t displays = 0;             // 0: as the row above it with a smaller depth
  RowForm form = RowForm::kBoth;
  bool (*applies)(const RowFacts&) = nullptr;  // none: always
};

// All but the lists (supported clocks, processes), in the order of the original.
std::span<const ReportRow> report_rows();

}  // namespace gpu_emulator
