#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "accounting/amount_text.h"
#include "accounting/monthly_documents.h"
#include "base/utf8.h"

namespace gpu_platform::accounting {

namespace {

constexpr std::string_view kPageHead = R"(<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
@page { size: A4; margin: 16mm; }
body { font: 11pt/1.4 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 180mm;
  margin: 2em auto; padding: 0 1em; }
h1 { font-size: 18pt; margin: 0; }
h2 { font-size: 13pt; margin: 1.6em 0 .4em; break-after: avoid; }
table { border-collapse: collapse; width: 100%; }
thead { display: table-header-group; }
tr, svg { break-inside: avoid; }
th, td { text-align: left; padding: .2em .5em; border-bottom: 1px solid #d8d8d8; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.sum td { font-weight: 600; }
tr.part td:first-child { padding-left: 1.6em; }
.flag { color: #a33000; font-weight: 600; }
.small { color: #555; font-size: 9pt; }
svg { width: 100%; height: auto; }
@media print { body { margin: 0; padding: 0; max-width: none; } }
</style>
)";

constexpr std::int64_t kBarSpace = 60;
constexpr std::int64_t kBarWidth = 40;
constexpr std::int64_t kBarsHeight = 120;

// Rounds the columns of a table.
struct ColumnRounders {
  HundredthRounder hours;
  HundredthRounder not_billed;
  HundredthRounder cost;
};

// A row of a table of bills, in hundredths.
struct ShownRow {
  std::string name;  // HTML
  std::int64_t hours = 0;
  std::int64_t not_billed = 0;
  std::int64_t cost = 0;
  std::int64_t unpriced = 0;  // millionths
  bool is_unpriced = false;
  std::string_view row_class;
};

ShownRow shown_row(const BillRow& row, ColumnRounders& rounders) {
  const std::string_view type = row.gpu_type;
  return {.name = html_name(type.empty() ? "unknown type" : type),
          .hours = rounders.hours.next(row.hours()),
          .not_billed = rounders.not_billed.next(row.not_billed),
          .cost = rounders.cost.next(row.cost.value()),
          .unpriced = row.unpriced,
          .is_unpriced = row.is_unpriced(),
          .row_class = "part"};
}

std::string cost_cell(const ShownRow& row) {
  if (row.is_unpriced) return "<span class=\"flag\">no price</span>";
  std::string text = with_hundredths(row.cost);
  if (row.unpriced != 0) text += " <span class=\"flag\">+ hours without a price</span>";
  return text;
}

std::string html_of_row(const ShownRow& row) {
  return fmt::format(
      "<tr class=\"{}\"><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
      "<td class=\"n\">{}</td></tr>\n",
      row.row_class, row.name, with_hundredths(row.hours), with_hundredths(row.not_billed),
      cost_cell(row));
}

std::string bill_table_head(std::string_view first, const MonthlyReport& report) {
  return fmt::format(
      "<table>\n<thead><tr><th>{}</th><th class=\"n\">GPU-hours billed</th>"
      "<th class=\"n\">not billed</th><th class=\"n\">cost ({})</th></tr></thead>\n<tbody>\n",
      first, html_text(report.currency));
}

// The sum of rows that are shown: what the reader adds up is what is written.
ShownRow sum_of_rows(std::span<const ShownRow> rows, std::string name) {
  ShownRow sum{.name = std::move(name), .row_class = "sum"};
  for (const ShownRow& row : rows) {
    sum.hours += row.hours;
    sum.not_billed += row.not_billed;
    sum.cost += row.cost;
  }
  return sum;
}

std::vector<ShownRow> shown_rows(const TeamBill& bill, ColumnRounders& rounders) {
  std::vector<ShownRow> rows;
  for (const BillRow& row : bill.rows) rows.push_back(shown_row(row, rounders));
  const auto put_if_any = [&](std::string_view name, base::MicroUsd amount) {
    if (amount == base::MicroUsd()) return;
    rows.push_back({.name = std::string(name),
                    .cost = rounders.cost.next(amount.value()),
                    .row_class = "part"});
  };
  put_if_any("jobs without GPUs", bill.cpu);
  put_if_any("corrections", bill.corrections);
  return rows;
}

std::string team_table(const MonthlyReport& report) {
  std::string out = "<h2>Teams</h2>\n" + bill_table_head("team and GPU type", report);
  ColumnRounders rounders;
  std::vector<ShownRow> teams;
  for (const TeamBill& bill : report.teams) {
    const std::vector<ShownRow> rows = shown_rows(bill, rounders);
    teams.push_back(sum_of_rows(
        rows, bill.team.empty() ? std::string("without a team") : html_name(bill.team)));
    out += html_of_row(teams.back());
    for (const ShownRow& row : rows) out += html_of_row(row);
  }
  out += html_of_row(sum_of_rows(teams, "total"));
  return out + "</tbody>\n</table>\n";
}

std::string type_table(const MonthlyReport& report) {
  std::string out = "<h2>GPU types</h2>\n" + bill_table_head("GPU type", report);
  ColumnRounders rounders;
  std::vector<ShownRow> rows;
  for (const BillRow& row : report.by_type) {
    rows.push_back(shown_row(row, rounders));
    rows.back().row_class = "";
    out += html_of_row(rows.back());
  }
  out += html_of_row(sum_of_rows(rows, "all GPUs"));
  return out + "</tbody>\n</table>\n";
}

std::string one_bar(const TrendPoint& point, std::int64_t left, base::MicroUsd highest) {
  const __int128 scaled = static_cast<__int128>(std::max<std::int64_t>(point.cost.value(), 0)) *
                          kBarsHeight / highest.value();
  const auto height = static_cast<std::int64_t>(scaled);
  const std::string month = base::to_string(point.month);
  HundredthRounder cents;
  return fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#2f6f4e\">"
      "<title>{}: {}</title></rect>\n"
      "<text x=\"{}\" y=\"{}\" font-size=\"10\" text-anchor=\"middle\">{}</text>\n",
      left, kBarsHeight - height, kBarWidth, height, month,
      with_hundredths(cents.next(point.cost.value())), left + kBarWidth / 2, kBarsHeight + 14,
      month);
}

std::string trend_picture(const MonthlyReport& report) {
  base::MicroUsd highest(1);
  for (const TrendPoint& point : report.trend) highest = std::max(highest, point.cost);
  const auto months = static_cast<std::int64_t>(report.trend.size());
  std::string out = fmt::format(
      "<h2>The last {} months</h2>\n"
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"cost of each month\">\n",
      months, months * kBarSpace, kBarsHeight + 20);
  std::int64_t left = (kBarSpace - kBarWidth) / 2;
  for (const TrendPoint& point : report.trend) {
    out += one_bar(point, left, highest);
    left += kBarSpace;
  }
  HundredthRounder cents;
  return out + fmt::format("</svg>\n<p class=\"small\">The highest bar is {} {}.</p>\n",
                           with_hundredths(cents.next(highest.value())),
                           html_text(report.currency));
}

// "12.5 %": tenths, cut off.
std::string share_text(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "";
  const auto tenths = static_cast<std::int64_t>(static_cast<__int128>(part) * 1000 / whole);
  return fmt::format("{}.{} %", tenths / 10, tenths % 10);
}

std::string html_of_fleet_row(const FleetRow& row, const FleetRow& total, ColumnRounders& rounders,
                              std::string_view row_class) {
  return fmt::format(
      "<tr class=\"{}\"><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
      "<td class=\"n\">{}</td></tr>\n",
      row_class, html_name(row.what), with_hundredths(rounders.hours.next(row.hours)),
      share_text(row.hours, total.hours), with_hundredths(rounders.cost.next(row.cost.value())));
}

std::string fleet_table_head(std::string_view first, const MonthlyReport& report) {
  return fmt::format(
      "<table>\n<thead><tr><th>{}</th><th class=\"n\">GPU-hours</th>"
      "<th class=\"n\">share of the fleet</th><th class=\"n\">cost ({})</th></tr></thead>\n"
      "<tbody>\n",
      first, html_text(report.currency));
}

std::string fleet_tables(const MonthlyReport& report) {
  std::string out = "<h2>The whole fleet</h2>\n" + fleet_table_head("what became of it", report);
  ColumnRounders rounders;
  for (const FleetRow& row : report.fleet) {
    out += html_of_fleet_row(row, report.fleet_total, rounders, "");
  }
  ColumnRounders of_total;
  out += html_of_fleet_row(report.fleet_total, report.fleet_total, of_total, "sum");
  out += "</tbody>\n</table>\n<h2>Idle GPUs</h2>\n" + fleet_table_head("GPU type", report);
  ColumnRounders of_idle;
  for (const FleetRow& row : report.idle) {
    out += html_of_fleet_row(row, report.fleet_total, of_idle, "");
  }
  return out + "</tbody>\n</table>\n";
}

std::string findings_list(const Findings& findings, std::string_view title) {
  if (findings.empty()) return {};
  std::string out = fmt::format("<p>{}</p>\n<ul>\n", title);
  for (const std::string& each : findings.named) {
    out += fmt::format("<li>{}</li>\n", html_name(each));
  }
  if (findings.more > 0) out += fmt::format("<li>and {} more</li>\n", findings.more);
  return out + "</ul>\n";
}

std::string balance_section(const BalanceReport& balance) {
  std::string out = "<h2>Balance</h2>\n";
  if (balance.balances()) {
    out += fmt::format(
        "<p>The books of {} GPUs balance: bills, discounts and the rest of the fleet cost "
        "together exactly what the fleet costs.</p>\n",
        balance.gpus);
  }
  out +=
      findings_list(balance.differences, "<span class=\"flag\">The books do not balance:</span>");
  return out + findings_list(balance.absences, "Times without lines:");
}

std::string page_summary(const MonthlyReport& report) {
  HundredthRounder cost;
  HundredthRounder hours;
  std::string out = fmt::format("<h1>GPU costs of {}</h1>\n", base::to_string(report.month));
  out += report.is_final
             ? "<p>The month is closed. Its figures do not change any more.</p>\n"
             : "<p class=\"flag\">Provisional: the month, or an attempt in it, goes on.</p>\n";
  if (!report.has_all_teams) out += "<p>The report is of some teams alone.</p>\n";
  return out + fmt::format("<p>Total: <strong>{} {}</strong> for {} GPU-hours of {} teams.</p>\n",
                           with_hundredths(cost.next(report.total.value())),
                           html_text(report.currency),
                           with_hundredths(hours.next(report.gpus.hours())), report.teams.size());
}

constexpr std::string_view kPageNotes =
    "<p class=\"small\">Months are calendar months in UTC. Jobs are billed from their start to "
    "their end. Preparing and cleaning up are not billed, and neither are runs that were lost to "
    "hardware or to the platform. On this page, hours and amounts have two decimals and are "
    "rounded so that each table adds up. The bill of each team is exact to a millionth in the CSV "
    "and JSON documents of the month.</p>\n";

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = base::take_character(text);
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (base::is_harmful(c)) {
          out += "\xef\xbf\xbd";
        } else {
          out += before.substr(0, before.size() - text.size());
        }
    }
  }
  return out;
}

std::string html_name(std::string_view text) {
  return "<bdi>" + html_text(text) + "</bdi>";
}

std::string html_of(const MonthlyReport& report) {
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n";
  out += kPageHead;
  out += fmt::format("<title>GPU costs of {}</title>\n</head>\n<body>\n",
                     base::to_string(report.month));
  out += page_summary(report);
  out += team_table(report);
  out += type_table(report);
  out += trend_picture(report);
  if (report.has_fleet) {
    out += fleet_tables(report);
    out += balance_section(report.balance);
  }
  out += kPageNotes;
  return out + "</body>\n</html>\n";
}

}  // namespace gpu_platform::accounting
