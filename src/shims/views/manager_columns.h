#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// The columns of sacctmgr. Every entity knows all of them; those that it has no value for are
// empty. Names, titles, widths and the shortest beginnings are those of Slurm 24.11. Pure.

namespace gpu_platform::shims {

struct ManagerColumn {
  std::string_view name;
  std::size_t least = 1;   // letters of the name that must be there
  std::string_view title;  // names that mean the same have the same
  int width = 0;           // below zero: at the left end
};

std::span<const ManagerColumn> manager_columns();

struct ChosenColumn {
  std::string_view title;
  int width = 0;  // below zero: at the left end

  friend bool operator==(const ChosenColumn&, const ChosenColumn&) = default;
};

// Reads "name,MaxTRESPU%20,desc%-30": any case, and beginnings. The error is Slurm's.
base::Result<std::vector<ChosenColumn>> chosen_columns(std::string_view format);

// What an entity has, by the title of its column.
using ManagedRow = std::map<std::string, std::string, std::less<>>;

// Empty where it has none; "Unknown" of a time.
std::string cell_of(const ManagedRow& row, std::string_view title);

struct TableStyle {
  bool has_header = true;
  std::string delimiter = {};  // empty: columns of fixed widths
  bool ends_with_delimiter = false;
};

std::string managed_table(const std::vector<ChosenColumn>& columns,
                          const std::vector<ManagedRow>& rows, const TableStyle& style);

}  // namespace gpu_platform::shims
