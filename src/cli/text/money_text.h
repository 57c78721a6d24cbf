#pragma once

#include <string>
#include <string_view>

#include "base/units.h"

// Amounts of money as people read them.

namespace gpu_platform::cli {

// An amount of a message, "12.345600" or "12". Zero if the text is none.
base::MicroUsd amount_of(std::string_view text);

// A single amount: "1,234.57", and "0.00153" of one that hundredths would not show.
std::string single_amount(std::string_view text);

// "0.000153 USD".
std::string single_amount(std::string_view text, std::string_view currency);

}  // namespace gpu_platform::cli
