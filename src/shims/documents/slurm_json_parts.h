#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "cli/text/json_view.h"

// What several of Slurm's documents have. Pure.

namespace gpu_platform::shims {

// Seconds since 1970; 0 of no time.
std::int64_t seconds_of_document(const std::optional<base::Instant>& at);
// 0 of what is no number.
std::int64_t number_of_document(const std::string& text);
// Empty of "(null)".
std::string text_of_document(std::string text);
// "0:9" as status, code and signal.
cli::Json exit_of_document(const std::string& exit);
// "cpu=8,mem=2G,gres/gpu=2" as a list of what is counted; memory in MiB.
cli::Json tres_of_document(const std::string& text);
// The same of nothing, for each of the most, the least, the mean and the sum.
cli::Json no_tres();

}  // namespace gpu_platform::shims
