#pragma once

#include <string>

#include "store/sqlite/repair.h"

// What `gpu-platform store check` and `gpu-platform store recover` print.

namespace gpu_platform::store {

struct ReportText {
  std::string text;      // whole lines
  bool is_good = false;  // nothing is damaged, missing or lost
};

// `data_dir`: as the user named it, for the command that helps.
ReportText check_text(const StoreReport& report, const std::string& data_dir);

ReportText recovery_text(const RecoveryReport& report);

}  // namespace gpu_platform::store
