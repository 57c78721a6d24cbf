#include "cli/text/usage_text.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "accounting/amount_text.h"
#include "base/parse.h"
#include "base/utc.h"
#include "cli/client_names.h"
#include "cli/text/csv.h"
#include "cli/text/message_text.h"
#include "cli/text/money_text.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;
using accounting::HundredthRounder;

// ---- words

std::string cents(HundredthRounder& rounder, std::string_view amount) {
  return accounting::with_hundredths(rounder.next(amount_of(amount).value()));
}

std::string hours_with_3(double hours) {
  return fmt::format("{:.3f}", hours);
}

std::string or_word(const std::string& text, std::string_view word) {
  return text.empty() ? std::string(word) : text;
}

std::string shown_minute(const google::protobuf::Timestamp& at) {
  const auto time = time_of(at);
  return time ? short_time(*time) : std::string();
}

// The begin of a step, as far as the step has it: "2026-10-01", "2026-10", "2026-10-01 13Z".
std::string step_text(const std::string& step, const google::protobuf::Timestamp& from) {
  const auto time = time_of(from);
  if (!time) return {};
  const std::string text = base::utc(*time);
  if (step == "month") return text.substr(0, 7);
  if (step == "day") return text.substr(0, 10);
  return text.substr(0, 10) + " " + text.substr(11, 2) + "Z";
}

std::string title_of(std::string by) {
  std::ranges::transform(by, by.begin(), [](unsigned char letter) { return std::toupper(letter); });
  return by;
}

bool is_zero(const std::string& amount) {
  return amount_of(amount).value() == 0;
}

// Whether a job used anything, or an amount was corrected. To operators a group without keys also
// has the time that no job had, which other tables show.
bool has_use(const v1::UsageFigures& figures) {
  return figures.gpu_hours() > 0 || figures.core_hours() > 0 || !is_zero(figures.cost()) ||
         !is_zero(figures.list_cost()) || !is_zero(figures.corrections());
}

bool has_use(const v1::Usage& usage) {
  return has_use(usage.total()) || std::ranges::any_of(usage.groups(), [](const auto& group) {
           return has_use(group.figures());
         });
}

double hours_not_billed(const v1::UsageFigures& figures) {
  double hours = 0;
  for (const v1::UsagePart& part : figures.not_billed()) hours += part.gpu_hours();
  return hours;
}

// ---- usage

// Which columns have something to say.
struct UsageColumns {
  explicit UsageColumns(const v1::Usage& usage)
      : step(usage.has_step() && usage.step() != "none"),
        name(std::ranges::find(usage.group_by(), "job") != usage.group_by().end()),
        not_billed(hours_not_billed(usage.total()) > 0),
        core_hours(usage.total().core_hours() > 0),
        discount(!is_zero(usage.total().discount())),
        corrections(!is_zero(usage.total().corrections())) {}

  bool step, name, not_billed, core_hours, discount, corrections;
};

std::vector<Column> usage_columns(const v1::Usage& usage, const UsageColumns& has) {
  std::vector<Column> columns;
  for (const std::string& by : usage.group_by()) {
    columns.push_back({.title = title_of(by), .cut_to = 8});
  }
  if (has.name) columns.push_back({.title = "NAME", .cut_to = 8, .expendable = 4});
  if (has.step) columns.push_back({.title = "FROM"});
  if (columns.empty()) columns.push_back({.title = "USAGE"});
  columns.push_back({"GPU-HOURS", Align::kRight});
  if (has.not_billed) {
    columns.push_back({.title = "NOT BILLED", .align = Align::kRight, .expendable = 3});
  }
  if (has.core_hours) {
    columns.push_back({.title = "CORE-HOURS", .align = Align::kRight, .expendable = 2});
  }
  if (has.discount) {
    columns.push_back({.title = "LIST", .align = Align::kRight, .expendable = 1});
    columns.push_back({.title = "DISCOUNT", .align = Align::kRight, .expendable = 1});
  }
  if (has.corrections) {
    columns.push_back({.title = "CORRECTED", .align = Align::kRight, .expendable = 1});
  }
  columns.push_back({fmt::format("COST {}", harmless(usage.currency())), Align::kRight});
  return columns;
}

std::int64_t hundredths(HundredthRounder& rounder, std::string_view amount) {
  return rounder.next(amount_of(amount).value());
}

// The money of rows that follow each other, to hundredths. Each row adds up, and so do the columns.
class UsageRows {
 public:
  explicit UsageRows(const UsageColumns& has) : has_(has) {}

  void add(const v1::UsageFigures& figures, std::vector<std::string> cells, Table& table) {
    cells.push_back(hours_with_3(figures.gpu_hours()));
    if (has_.not_billed) cells.push_back(hours_with_3(hours_not_billed(figures)));
    if (has_.core_hours) cells.push_back(hours_with_3(figures.core_hours()));
    const std::int64_t discount = hundredths(discount_, figures.discount());
    const std::int64_t corrections = hundredths(corrections_, figures.corrections());
    const std::int64_t cost = hundredths(cost_, figures.cost());
    if (has_.discount) {
      cells.push_back(accounting::with_hundredths(cost - corrections + discount));
      cells.push_back(accounting::with_hundredths(discount));
    }
    if (has_.corrections) cells.push_back(accounting::with_hundredths(corrections));
    // What has no price is not free.
    cells.push_back((figures.unpriced_gpu_hours() > 0 ? "? + " : "") +
                    accounting::with_hundredths(cost));
    table.add(std::move(cells));
  }

 private:
  const UsageColumns& has_;
  HundredthRounder discount_, corrections_, cost_;
};

std::string usage_table(const v1::Usage& usage, const TableStyle& style) {
  if (!has_use(usage)) return "No job that you may see used anything that matches.\n";
  const UsageColumns has(usage);
  Table table(usage_columns(usage, has));
  UsageRows rows(has);
  for (const v1::UsageGroup& group : usage.groups()) {
    if (usage.group_by().empty() && !has.step) break;
    if (!has_use(group.figures())) continue;
    std::vector<std::string> cells;
    for (int i = 0; i < group.keys_size(); ++i) {
      cells.push_back(or_word(group.keys(i), fmt::format("(no {})", usage.group_by(i))));
    }
    if (has.name) cells.push_back(group.job_name());
    if (has.step) cells.push_back(step_text(usage.step(), group.from()));
    rows.add(group.figures(), std::move(cells), table);
  }
  std::vector<std::string> cells(std::max<std::size_t>(
      1, static_cast<std::size_t>(usage.group_by_size()) + static_cast<std::size_t>(has.name) +
             static_cast<std::size_t>(has.step)));
  cells.front() = "total";
  UsageRows(has).add(usage.total(), std::move(cells), table);
  return table.render(style);
}

template <class Parts>
void add_parts(const Parts& parts, HundredthRounder& rounder, Table& table) {
  for (const v1::UsagePart& part : parts) {
    table.add({part.name(), hours_with_3(part.gpu_hours()), cents(rounder, part.cost())});
  }
}

Table part_table(std::string title, const std::string& currency) {
  return Table({{.title = std::move(title), .cut_to = 12},
                {"GPU-HOURS", Align::kRight},
                {fmt::format("COST {}", harmless(currency)), Align::kRight}});
}

// Why use is not billed, and, for operators, what became of the other time.
std::string other_time_table(const v1::Usage& usage, const TableStyle& style) {
  const v1::UsageFigures& total = usage.total();
  Table table = part_table("NOT BILLED", usage.currency());
  HundredthRounder rounder;
  add_parts(total.not_billed(), rounder, table);
  if (!total.rest().empty()) {
    add_parts(std::vector{total.starting(), total.cleaning()}, rounder, table);
    add_parts(total.rest(), rounder, table);
  }
  return table.empty() ? std::string() : "\n" + table.render(style);
}

std::string unpriced_note(double hours) {
  if (hours <= 0) return {};
  return fmt::format(
      "\n{} GPU-hours have no price: they are not free, and not in the cost "
      "(gpu-platform prices list)\n",
      hours_with_3(hours));
}

// ---- lines of the ledger

std::string gpu_of(const v1::LedgerLine& line) {
  if (line.gpu_id().empty()) return fmt::format("{}, {}", line.node(), counted(line.cpus(), "CPU"));
  const base::GpuShare share(line.gpu_share());
  const std::string part =
      share == base::kWholeGpu ? std::string() : base::written_share(share) + " of ";
  return fmt::format("{}{} {}", part, line.node(), line.gpu_id());
}

std::string what_of(const v1::LedgerLine& line) {
  if (line.has_rest()) return line.rest();
  if (line.has_amount()) return "correction: " + line.reason();
  return fmt::format("{}.{}{}", line.job(), line.attempt(), line.running() ? ", runs" : "");
}

std::string line_cost(const v1::LedgerLine& line) {
  if (line.has_not_billed()) return line.not_billed();
  if (line.has_rest()) return {};
  const bool has_price = line.has_price_per_hour() || line.gpu_id().empty();
  return has_price ? single_amount(line.cost()) : "no price";
}

// The use of a line that was held; of others all of it.
const google::protobuf::Timestamp& begin_of(const v1::LedgerLine& line) {
  return line.has_started_at() ? line.started_at() : line.from();
}
const google::protobuf::Timestamp& end_of(const v1::LedgerLine& line) {
  return line.has_ended_at() ? line.ended_at() : line.to();
}

std::string line_hours(const v1::LedgerLine& line) {
  const auto from = time_of(begin_of(line));
  const auto to = time_of(end_of(line));
  if (!from || !to || line.has_amount()) return {};
  return hours_with_3(static_cast<double>((*to - *from).value()) / 3.6e12 * line.gpu_share() /
                      static_cast<double>(base::kWholeGpu.value()));
}

// ---- reports

std::string trend_table(const v1::MonthlyReport& report, const TableStyle& style) {
  Table table({{.title = "MONTH"},
               {"GPU-HOURS", Align::kRight},
               {fmt::format("COST {}", harmless(report.currency())), Align::kRight}});
  bool has_begun = false;  // months before the first with usage say nothing
  for (const v1::MonthlyPoint& point : report.trend()) {
    has_begun = has_begun || point.gpu_hours() > 0 || !is_zero(point.cost());
    if (!has_begun) continue;
    HundredthRounder rounder;
    table.add({point.month(), hours_with_3(point.gpu_hours()), cents(rounder, point.cost())});
  }
  return table.empty() ? std::string() : "\n" + table.render(style);
}

std::string teams_of_month(const v1::MonthlyReport& report, const TableStyle& style) {
  Table table({{.title = "TEAM", .cut_to = 8},
               {.title = "TYPE", .cut_to = 8},
               {"GPU-HOURS", Align::kRight},
               {fmt::format("COST {}", harmless(report.currency())), Align::kRight}});
  HundredthRounder rounder;
  const auto add_money = [&](const std::string& team, std::string_view what,
                             const std::string& amount) {
    if (!is_zero(amount)) table.add({team, std::string(what), "", cents(rounder, amount)});
  };
  double hours = 0;
  for (const v1::MonthlyTeam& team : report.teams()) {
    const std::string name = or_word(team.team(), "(no team)");
    for (const v1::MonthlyGpuType& type : team.by_gpu_type()) {
      std::string cost = cents(rounder, type.cost());
      if (type.unpriced_hours() > 0) cost = "? + " + cost;
      table.add({name, type.gpu_type(), hours_with_3(type.hours()), std::move(cost)});
      hours += type.hours();
    }
    add_money(name, "without GPUs", team.cpu_cost());
    add_money(name, "corrections", team.corrections());
  }
  HundredthRounder whole;
  table.add({"total", "", hours_with_3(hours), cents(whole, report.total())});
  return table.render(style);
}

std::string sentences(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += harmless(text) + "\n";
  return out;
}

double unpriced_hours(const v1::MonthlyReport& report) {
  double hours = 0;
  for (const v1::MonthlyGpuType& type : report.by_gpu_type()) hours += type.unpriced_hours();
  return hours;
}

}  // namespace

std::string usage_page(const v1::Usage& usage, const TableStyle& style) {
  std::string page =
      fmt::format("Usage from {} to {}{}\n\n", shown_minute(usage.since()),
                  shown_minute(usage.until()), usage.has_running() ? ", with what still runs" : "");
  page += usage_table(usage, style);
  page += other_time_table(usage, style);
  return page + unpriced_note(usage.total().unpriced_gpu_hours());
}

std::string usage_csv(const v1::Usage& usage) {
  const bool has_step = usage.has_step() && usage.step() != "none";
  std::string text;
  for (const std::string& by : usage.group_by()) text += csv_cell(by) + ",";
  if (has_step) text += "from,";
  text +=
      "gpu_hours,billed_gpu_hours,unpriced_gpu_hours,core_hours,list_cost,discount,corrections,"
      "cost,currency\n";
  for (const v1::UsageGroup& group : usage.groups()) {
    if (!has_use(group.figures())) continue;
    for (const std::string& key : group.keys()) text += csv_cell(key) + ",";
    const auto from = time_of(group.from());
    if (has_step) text += (from ? base::utc(*from) : std::string()) + ",";
    const v1::UsageFigures& figures = group.figures();
    text += fmt::format("{:.6f},{:.6f},{:.6f},{:.6f},{},{},{},{},{}\n", figures.gpu_hours(),
                        figures.billed_gpu_hours(), figures.unpriced_gpu_hours(),
                        figures.core_hours(), figures.list_cost(), figures.discount(),
                        figures.corrections(), figures.cost(), csv_cell(usage.currency()));
  }
  return text;
}

std::string ledger_table(const std::vector<v1::LedgerLine>& lines, const TableStyle& style) {
  Table table({{.title = "JOB", .cut_to = 8},
               {.title = "USER", .cut_to = 6, .expendable = 2},
               {.title = "TEAM", .cut_to = 6, .expendable = 3},
               {.title = "GPU", .cut_to = 12},
               {.title = "TYPE", .cut_to = 8, .expendable = 1},
               {.title = "FROM"},
               {.title = "TO", .expendable = 4},
               {"GPU-HOURS", Align::kRight},
               {.title = "PRICE", .align = Align::kRight, .expendable = 5},
               {"COST", Align::kRight}});
  for (const v1::LedgerLine& line : lines) {
    table.add({what_of(line), line.user(), line.team(), line.has_amount() ? "" : gpu_of(line),
               line.gpu_type(), shown_minute(begin_of(line)), shown_minute(end_of(line)),
               line_hours(line),
               line.has_price_per_hour() ? single_amount(line.price_per_hour()) : std::string(),
               line_cost(line)});
  }
  return table.render(style);
}

std::string monthly_page(const v1::MonthlyReport& report, const TableStyle& style) {
  std::string page = fmt::format("{} ({})\n", report.month(), report.status());
  if (report.partial()) page += "Sums are of the jobs that you may see.\n";
  page += "\n" + teams_of_month(report, style) + trend_table(report, style);
  HundredthRounder rounder;
  Table fleet = part_table("FLEET", report.currency());
  add_parts(report.fleet(), rounder, fleet);
  if (report.has_fleet_total()) {
    HundredthRounder whole;
    add_parts(std::vector{report.fleet_total()}, whole, fleet);
  }
  if (!fleet.empty()) page += "\n" + fleet.render(style);
  HundredthRounder idle_rounder;
  Table idle = part_table("IDLE", report.currency());
  add_parts(report.idle(), idle_rounder, idle);
  if (!idle.empty()) page += "\n" + idle.render(style);
  page += unpriced_note(unpriced_hours(report));
  return page + sentences(report.differences());
}

std::string balance_page(const v1::Balance& balance, const TableStyle& style) {
  std::string page = fmt::format("{} from {} to {}\n\n", counted(balance.gpus(), "GPU"),
                                 shown_minute(balance.since()), shown_minute(balance.until()));
  Table table = part_table("TIME", balance.currency());
  HundredthRounder rounder;
  add_parts(balance.parts(), rounder, table);
  HundredthRounder whole;
  add_parts(std::vector{balance.whole()}, whole, table);
  page += table.render(style) + "\n";
  page += balance.differences().empty() ? "The books balance.\n" : sentences(balance.differences());
  return page + sentences(balance.absences());
}

std::string cost_of(const v1::Job& job) {
  if (!job.has_cost()) return {};
  const v1::JobCost& cost = job.cost();
  if (cost.gpu_hours() <= 0 && is_zero(cost.cost())) return {};
  std::string text = cost.unpriced_gpu_hours() > 0 && is_zero(cost.cost())
                         ? std::string("not known, there is no price")
                         : single_amount(cost.cost(), cost.currency());
  if (cost.gpu_hours() > 0) {
    text += fmt::format(": {:.3g} GPU-hours", cost.gpu_hours());
    if (!cost.gpu_type().empty()) text += " of " + cost.gpu_type();
  }
  if (cost.running()) text += ", so far";
  return text;
}

std::string energy_of(const v1::Job& job) {
  const v1::JobCost& cost = job.cost();
  if (!cost.has_energy_kwh()) return {};
  std::string text = fmt::format("{:.3g} kWh", cost.energy_kwh());
  if (cost.has_energy_cost()) {
    text += fmt::format(", {} beside the bill", single_amount(cost.energy_cost(), cost.currency()));
  }
  if (cost.has_co2_grams()) text += fmt::format(", {:.3g} g of CO2", cost.co2_grams());
  return text;
}

std::string cost_of(const v1::Job& job, const v1::Attempt& attempt) {
  const auto& attempts = job.cost().attempts();
  const auto found = std::ranges::find_if(
      attempts, [&](const v1::AttemptCost& cost) { return cost.attempt() == attempt.attempt(); });
  if (found == attempts.end()) return {};
  if (found->has_not_billed()) return "not billed: " + found->not_billed();
  return single_amount(found->cost(), job.cost().currency());
}

}  // namespace gpu_platform::cli
