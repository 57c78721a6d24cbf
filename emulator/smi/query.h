#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smi/gpu.h"

// Comma-separated values: --query-gpu and --query-compute-apps.

namespace gpu_emulator {

struct CsvFormat {
  bool has_header = true;
  bool has_units = true;
};

// Reads "csv", "csv,noheader,nounits"; nothing for other words, or without csv.
bool read_csv_format(std::string_view text, CsvFormat& format);

// What a query is about: all GPUs of the machine, and those that are asked for.
struct Subjects {
  const DriverFacts& driver;
  std::span<const Gpu> gpus;
  std::size_t count = 0;  // of the machine
  std::string now;        // "2026/11/27 08:30:00.123"
};

// Appends the header and a line for each GPU. Otherwise the name of the field that is none.
std::string query_gpus(const Subjects& subjects, std::string_view fields, CsvFormat format,
                       std::string& out);
// The same with a line for each process that computes.
std::string query_processes(const Subjects& subjects, std::string_view fields, CsvFormat format,
                            std::string& out);

// A line for each field, with its other names.
std::string names_of_gpu_fields();
std::string names_of_process_fields();

}  // namespace gpu_emulator
