#include "accounting/monthly_documents.h"

#include <fmt/format.h>

#include "accounting/amount_text.h"
#include "base/utf8.h"

namespace gpu_platform::accounting {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

void append_json_escape(std::string& out, char32_t c) {
  if (c <= 0xffff) {
    out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
    return;
  }
  const std::uint32_t rest = static_cast<std::uint32_t>(c) - 0x10000;
  out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
}

std::string json_of_row(const BillRow& row) {
  std::string out = fmt::format("{{\"hours\": {}, \"cost\": {}", shortest(row.hours()),
                                row.is_unpriced() ? "null" : shortest(row.cost.value()));
  if (row.unpriced != 0) out += fmt::format(", \"unpriced_hours\": {}", shortest(row.unpriced));
  return out + "}";
}

std::string json_of_bill(const TeamBill& bill) {
  std::string out = fmt::format("{{\n      \"total_cost\": {},", shortest(bill.total.value()));
  out += "\n      \"by_gpu_type\": {";
  std::string_view separator = "\n        ";
  for (const BillRow& row : bill.rows) {
    out += fmt::format("{}{}: {}", separator, json_text(row.gpu_type), json_of_row(row));
    separator = ",\n        ";
  }
  out += bill.rows.empty() ? "}" : "\n      }";
  const auto put_if_any = [&](std::string_view name, base::MicroUsd amount) {
    if (amount == base::MicroUsd()) return;
    out += fmt::format(",\n      \"{}\": {}", name, shortest(amount.value()));
  };
  put_if_any("cpu_cost", bill.cpu);
  put_if_any("corrections", bill.corrections);
  return out + "\n    }";
}

// The cells between the team and the currency.
std::string csv_of_row(const BillRow& row) {
  const auto money = [&](base::MicroUsd amount) {
    return row.is_unpriced() ? std::string() : six_decimals(amount.value());
  };
  return fmt::format("{},gpu,{},{},{},{},{},{}", csv_text(row.gpu_type), six_decimals(row.hours()),
                     six_decimals(row.unpriced), six_decimals(row.not_billed), money(row.list),
                     money(row.discount), money(row.cost));
}

}  // namespace

std::string json_text(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = base::take_character(text);
    if (c == base::kNotUtf8) {
      out += kReplacement;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (base::is_harmful(c)) {
      append_json_escape(out, c);
    } else {
      out += before.substr(0, before.size() - text.size());
    }
  }
  return out + "\"";
}

std::string csv_text(std::string_view text) {
  const bool is_formula =
      !text.empty() && std::string_view("=+-@\t\r\n").find(text.front()) != std::string_view::npos;
  const std::string guarded = (is_formula ? "'" : "") + base::without_harmful(text, "\t\r\n");
  if (guarded.find_first_of(",\"\r\n\t") == std::string::npos && !is_formula) return guarded;
  std::string quoted = "\"";
  for (const char c : guarded) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string json_of(const MonthlyReport& report) {
  std::string out =
      fmt::format("{{\n  \"month\": \"{}\",\n  \"teams\": {{", base::to_string(report.month));
  std::string_view separator = "\n    ";
  for (const TeamBill& bill : report.teams) {
    out += fmt::format("{}{}: {}", separator, json_text(bill.team), json_of_bill(bill));
    separator = ",\n    ";
  }
  out += report.teams.empty() ? "}" : "\n  }";
  return out + fmt::format(",\n  \"total\": {}\n}}\n", shortest(report.total.value()));
}

std::string csv_of(const MonthlyReport& report) {
  std::string out =
      "month,team,gpu_type,item,gpu_hours,unpriced_gpu_hours,not_billed_gpu_hours,list_cost,"
      "discount,cost,currency\r\n";
  const std::string currency = csv_text(report.currency);
  for (const TeamBill& bill : report.teams) {
    const std::string begin =
        fmt::format("{},{},", base::to_string(report.month), csv_text(bill.team));
    for (const BillRow& row : bill.rows) {
      out += fmt::format("{}{},{}\r\n", begin, csv_of_row(row), currency);
    }
    const auto put_if_any = [&](std::string_view item, base::MicroUsd amount) {
      if (amount == base::MicroUsd()) return;
      out +=
          fmt::format("{},{},,,,,,{},{}\r\n", begin, item, six_decimals(amount.value()), currency);
    };
    put_if_any("cpu", bill.cpu);
    put_if_any("correction", bill.corrections);
  }
  return out;
}

}  // namespace gpu_platform::accounting
