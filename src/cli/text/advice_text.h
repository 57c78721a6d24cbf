#pragma once

#include <string>

#include "cli/text/table.h"
#include "gpu_platform/v1/advice.pb.h"

// Savings, forecast and advice, for people. The money of a table is rounded to hundredths so that
// its rows add up to its total.

namespace gpu_platform::cli {

std::string savings_page(const v1::Savings& savings, const TableStyle& style);

// What is booked, what is expected, how that was made, and how good it was in past months.
std::string outlook_page(const v1::Forecast& month, const TableStyle& style);

// Families of jobs with a cheaper type, then what is not known of others; idle GPUs by team; GPUs
// that are worth a reservation.
std::string advice_page(const v1::Advice& advice, const TableStyle& style);

}  // namespace gpu_platform::cli
