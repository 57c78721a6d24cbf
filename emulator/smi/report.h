#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "smi/gpu.h"

// The report of -q, as text or as the XML document of -q -x, made of one table of rows.

namespace gpu_emulator {

// The sections that -d names; a report without -d has all.
using Displays = std::uint32_t;
inline constexpr Displays kEverything = ~Displays{0};
// Reads "MEMORY,ECC"; nothing if a name is none.
std::optional<Displays> read_displays(std::string_view text);
std::string names_of_displays();

struct ReportHead {
  const DriverFacts& driver;
  std::string now;                // "Fri Nov 27 08:30:00 2026"
  std::size_t attached_gpus = 0;  // of the machine
};

std::string text_report(const ReportHead& head, std::span<const Gpu> gpus, Displays displays);
std::string xml_report(const ReportHead& head, std::span<const Gpu> gpus, Displays displays);

}  // namespace gpu_emulator
