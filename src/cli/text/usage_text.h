#pragma once

#include <string>
#include <vector>

#include "cli/text/table.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/usage.pb.h"

// Usage and what it cost, for people and for spreadsheets. The money of a table is rounded to
// hundredths so that its rows add up to its total.

namespace gpu_platform::cli {

// A row for each group and one for all, then what became of the other time, and what has no price.
std::string usage_page(const v1::Usage& usage, const TableStyle& style);
// A line for each group, with a title.
std::string usage_csv(const v1::Usage& usage);

// The lines of the ledger behind figures.
std::string ledger_table(const std::vector<v1::LedgerLine>& lines, const TableStyle& style);

std::string monthly_page(const v1::MonthlyReport& report, const TableStyle& style);
std::string balance_page(const v1::Balance& balance, const TableStyle& style);

// "0.42 USD: 0.076 GPU-hours of H100-80GB"; empty of a job that used nothing that has a price.
std::string cost_of(const v1::Job& job);
// The same of an attempt: "0.42 USD", "not billed: hardware"; empty where it is not known.
std::string cost_of(const v1::Job& job, const v1::Attempt& attempt);
// "0.05 kWh, 0.02 USD beside the bill, 19 g of CO2"; empty where no energy was read.
std::string energy_of(const v1::Job& job);

}  // namespace gpu_platform::cli
