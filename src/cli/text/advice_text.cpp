#include "cli/text/advice_text.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "accounting/amount_text.h"
#include "cli/text/message_text.h"
#include "cli/text/money_text.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

using accounting::HundredthRounder;

// ---- words

std::string next_amount(HundredthRounder& rounder, const std::string& amount) {
  return accounting::with_hundredths(rounder.next(amount_of(amount).value()));
}

std::string gpu_hours_text(double hours) {
  return fmt::format("{:.3f}", hours);
}

std::string team_or_none(const std::string& team) {
  return team.empty() ? "(no team)" : team;
}

std::string with_currency(std::string_view title, const std::string& currency) {
  return fmt::format("{} {}", title, harmless(currency));
}

std::string window_line(std::string_view what, const google::protobuf::Timestamp& since,
                        const google::protobuf::Timestamp& until) {
  return fmt::format("{} from {} to {}\n", what, minute_of(since), minute_of(until));
}

std::string partial_line(bool is_partial) {
  return is_partial ? "Figures are of the jobs that you may see.\n" : "";
}

// ---- savings

// The rows of one table, in its order. Each adds up, too.
class SavingsRows {
 public:
  void add(const v1::SpotUse& use, const std::string& team, Table& table) {
    const std::int64_t cost = cost_.next(amount_of(use.cost()).value());
    const std::int64_t on_demand = on_demand_.next(amount_of(use.on_demand_cost()).value());
    table.add({team, use.gpu_type(), gpu_hours_text(use.gpu_hours()),
               accounting::with_hundredths(cost), accounting::with_hundredths(on_demand),
               accounting::with_hundredths(on_demand - cost)});
  }

 private:
  HundredthRounder cost_, on_demand_;
};

std::string savings_notes(const v1::SpotUse& total) {
  std::string notes;
  if (total.unpriced_gpu_hours() > 0) {
    notes += fmt::format("\n{} GPU-hours lack one of the two prices and are in no amount.\n",
                         gpu_hours_text(total.unpriced_gpu_hours()));
  }
  if (total.reclaimed_gpu_hours() > 0) {
    notes += fmt::format(
        "\n{} GPU-hours were used in vain by runs that were reclaimed. They are not billed.\n",
        gpu_hours_text(total.reclaimed_gpu_hours()));
  }
  return notes;
}

// ---- forecast

std::string trials_table(const v1::Forecast& month, const TableStyle& style) {
  Table table({{.title = "MONTH"},
               {.title = "AS OF"},
               {with_currency("FORECAST", month.currency()), Column::Align::kRight},
               {with_currency("COST", month.currency()), Column::Align::kRight},
               {"ERROR", Column::Align::kRight}});
  for (const v1::ForecastTrial& trial : month.trials()) {
    table.add({trial.month(), minute_of(trial.at()), single_amount(trial.expected_cost()),
               single_amount(trial.cost()), fmt::format("{:.1f}%", trial.error_percent())});
  }
  return table.empty() ? std::string() : "\n" + table.render(style);
}

std::string means_line(const v1::Forecast& month) {
  std::string line;
  for (const v1::WeekdayMean& mean : month.means()) {
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", harmless(mean.weekday()),
                        single_amount(mean.cost()));
  }
  return line;
}

std::string error_line(const v1::Forecast& month) {
  if (!month.has_error_percent()) {
    return "There is no past month to try the method on: its error is not known.\n";
  }
  return fmt::format("In {} it was {:.1f} % off on average.\n",
                     counted(static_cast<std::uint64_t>(month.trials_size()), "past month"),
                     month.error_percent());
}

// ---- advice

std::string name_of_family(const v1::JobFamily& family) {
  const std::string& name = family.name();
  return family.project().empty() ? name : fmt::format("{}/{}", family.project(), name);
}

std::string memory_of_family(const v1::JobFamily& family) {
  return family.has_peak_memory_bytes() ? readable_size(as_signed(family.peak_memory_bytes())) : "";
}

std::string families_table(const v1::Advice& advice, const TableStyle& style) {
  Table table({{.title = "JOBS", .cut_to = 8},
               {.title = "USER", .cut_to = 6, .expendable = 1},
               {.title = "TEAM", .cut_to = 6, .expendable = 2},
               {.title = "TYPE", .cut_to = 8},
               {"GPU-HOURS", Column::Align::kRight},
               {.title = "PEAK MEMORY", .align = Column::Align::kRight, .expendable = 3},
               {.title = "USE", .align = Column::Align::kRight, .expendable = 4},
               {with_currency("COST", advice.currency()), Column::Align::kRight},
               {.title = "CHEAPER", .cut_to = 8},
               {with_currency("SAVES", advice.currency()), Column::Align::kRight}});
  for (const v1::JobFamily& family : advice.families()) {
    if (!family.has_advised_gpu_type()) continue;
    table.add({name_of_family(family), family.user(), family.team(), family.gpu_type(),
               gpu_hours_text(family.gpu_hours()), memory_of_family(family),
               if_known(family.has_utilization_percent(), family.utilization_percent(), "{:.0f}%"),
               single_amount(family.cost()), family.advised_gpu_type(),
               fmt::format("{} ({}%)", single_amount(family.saved()), family.saved_percent())});
  }
  if (table.empty()) return "\nNo cheaper type of GPU is known that saves 5 % or more.\n";
  return "\n" + table.render(style);
}

// "Not known of 3 of 50 kinds of jobs: peak memory".
std::string unknown_lines(const v1::Advice& advice) {
  std::vector<std::pair<std::string, std::uint64_t>> counts;
  for (const v1::JobFamily& family : advice.families()) {
    for (const std::string& unknown : family.unknown()) {
      const auto found =
          std::ranges::find(counts, unknown, &std::pair<std::string, std::uint64_t>::first);
      if (found == counts.end()) {
        counts.emplace_back(unknown, 1);
      } else {
        ++found->second;
      }
    }
  }
  std::string lines;
  for (const auto& [unknown, count] : counts) {
    lines += fmt::format("Not known of {} of {} kinds of jobs: {}\n", count, advice.families_size(),
                         harmless(unknown));
  }
  return lines;
}

std::string waste_table(const v1::Advice& advice, const TableStyle& style) {
  if (advice.teams().empty()) return {};
  Table table({{.title = "TEAM", .cut_to = 8},
               {"IDLE HOURS", Column::Align::kRight},
               {with_currency("IDLE", advice.currency()), Column::Align::kRight},
               {"NOT MEASURED HOURS", Column::Align::kRight},
               {with_currency("NOT MEASURED", advice.currency()), Column::Align::kRight}});
  HundredthRounder idle;
  HundredthRounder not_measured;
  for (const v1::TeamActivity& team : advice.teams()) {
    table.add({team_or_none(team.team()), gpu_hours_text(team.idle().gpu_hours()),
               next_amount(idle, team.idle().cost()),
               gpu_hours_text(team.not_measured().gpu_hours()),
               next_amount(not_measured, team.not_measured().cost())});
  }
  std::string text = fmt::format("\nGPU-hours of attempts that used their GPUs below {:.0f} %:\n\n",
                                 advice.idle_below_percent()) +
                     table.render(style);
  if (advice.attempts_not_looked_at() > 0) {
    text += fmt::format("{} with few GPU-hours were not looked at and count as not measured.\n",
                        counted(advice.attempts_not_looked_at(), "attempt"));
  }
  return text;
}

std::string reserved_table(const v1::Advice& advice, const TableStyle& style) {
  if (advice.reserved().empty()) return {};
  Table table({{.title = "TYPE", .cut_to = 8},
               {"GPU-HOURS", Column::Align::kRight},
               {.title = "BREAK-EVEN", .align = Column::Align::kRight, .expendable = 1},
               {"RESERVE", Column::Align::kRight},
               {.title = "IN USE", .align = Column::Align::kRight, .expendable = 2},
               {with_currency("SAVES", advice.currency()), Column::Align::kRight}});
  for (const v1::ReservedAdvice& row : advice.reserved()) {
    const bool is_known = row.has_reserved_price();
    const bool is_advised = row.gpus() > 0;
    table.add({row.gpu_type(), gpu_hours_text(row.gpu_hours()),
               if_known(is_known, row.break_even_percent(), "{:.0f}%"),
               is_known ? fmt::format("{}", row.gpus()) : "no price",
               if_known(is_advised, row.in_use_percent(), "{:.0f}%"),
               is_advised ? single_amount(row.saved()) : std::string()});
  }
  return "\nGPUs that are worth a reservation:\n\n" + table.render(style);
}

}  // namespace

std::string savings_page(const v1::Savings& savings, const TableStyle& style) {
  std::string page = window_line("Use of spot capacity", savings.since(), savings.until()) +
                     partial_line(savings.partial());
  if (savings.rows().empty()) return page + "\nNo spot capacity was used.\n";
  Table table({{.title = "TEAM", .cut_to = 8},
               {.title = "TYPE", .cut_to = 8},
               {"GPU-HOURS", Column::Align::kRight},
               {with_currency("COST", savings.currency()), Column::Align::kRight},
               {"ON-DEMAND", Column::Align::kRight},
               {"SAVED", Column::Align::kRight}});
  SavingsRows rows;
  for (const v1::SpotUse& use : savings.rows()) rows.add(use, team_or_none(use.team()), table);
  SavingsRows().add(savings.total(), "total", table);
  return page + "\n" + table.render(style) + savings_notes(savings.total());
}

std::string outlook_page(const v1::Forecast& month, const TableStyle& style) {
  constexpr std::size_t kKeyWidth = 12;
  const auto line = [&](std::string_view key, const std::string& amount) {
    return key_line(key, single_amount(amount, month.currency()), kKeyWidth, style.width);
  };
  std::string page = fmt::format("{} as of {}\n", harmless(month.month()), minute_of(month.at())) +
                     partial_line(month.partial()) + "\n" + line("Booked", month.booked());
  if (!month.has_total()) return page + "\n" + harmless(month.no_total()) + "\n";
  page += line("Rest", month.rest()) + line("Total", month.total());
  page += fmt::format("\nThe rest is the mean of each weekday over the last {} days: {}.\n",
                      month.history_days(), means_line(month));
  return page + error_line(month) + trials_table(month, style);
}

std::string advice_page(const v1::Advice& advice, const TableStyle& style) {
  std::string page = window_line("Advice for the use", advice.since(), advice.until()) +
                     partial_line(advice.partial());
  page += families_table(advice, style) + unknown_lines(advice);
  if (advice.more_families() > 0) {
    page += fmt::format("{} other kinds of jobs with lower costs were not looked at.\n",
                        advice.more_families());
  }
  return page + waste_table(advice, style) + reserved_table(advice, style);
}

}  // namespace gpu_platform::cli
