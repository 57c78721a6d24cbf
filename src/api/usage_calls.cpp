#include "api/usage_calls.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "accounting/balance.h"
#include "accounting/monthly.h"
#include "accounting/monthly_documents.h"
#include "accounting/usage_sum.h"
#include "api/call_context.h"
#include "api/convert/job.h"
#include "api/ledger_view.h"
#include "api/usage_answer.h"
#include "api/usage_question.h"
#include "base/month.h"
#include "base/parse.h"
#include "os/clock.h"

namespace gpu_platform::api {

namespace {

constexpr std::uint64_t kDefaultLines = 1000;
constexpr std::uint64_t kMaxPlace = 1'000'000'000'000;

// ---- pages of lines

// The place of the first line of the page among those that the caller gets.
base::Result<std::uint64_t> first_line_of(const v1::ListLedgerRequest& request) {
  if (!request.has_page_token()) return 0;
  const auto place = base::parse_count(request.page_token(), 0, kMaxPlace);
  if (place) return *place;
  return base::invalid("page_token", "page_token: must be the next_page of an earlier answer");
}

// ---- months

base::Result<base::Month> month_of(const v1::GetMonthlyReportRequest& request, base::Instant now) {
  if (!request.has_month()) return base::month_of(now);
  const auto month = base::parse_month(request.month());
  if (!month) {
    return base::invalid("month",
                         fmt::format("month: '{}' is no month, as 2026-10 is", request.month()));
  }
  if (base::begin_of(*month) > now) {
    return base::invalid("month", fmt::format("month: {} lies in the future", request.month()));
  }
  return *month;
}

using Render = std::string (*)(const accounting::MonthlyReport& report);

// Null: no format is asked for.
base::Result<Render> renderer_of(const v1::GetMonthlyReportRequest& request) {
  if (!request.has_format()) return nullptr;
  constexpr std::pair<std::string_view, Render> kFormats[] = {
      {"json", accounting::json_of}, {"csv", accounting::csv_of}, {"html", accounting::html_of}};
  for (const auto& [name, render] : kFormats) {
    if (request.format() == name) return render;
  }
  return base::invalid("format",
                       fmt::format("format: '{}' is not one of json, csv, html", request.format()));
}

store::LedgerQuery lines_in(accounting::Span span) {
  return {.from = span.from, .to = span.to};
}

// Returns whether all that began in the month is over.
base::Result<bool> is_closed(const LedgerView& view, base::Month month) {
  const base::Instant end = base::end_of(month);
  if (end > view.now()) return false;
  bool is_closed = true;
  const store::LedgerQuery query{
      model::millis_of(base::begin_of(month)), model::millis_of(end), {}};
  TRY(view.visit_running(query, [&](const model::LedgerLine& line) -> base::Status {
    if (line.kind == model::LedgerKind::kHeld) is_closed = false;
    return {};
  }));
  return is_closed;
}

}  // namespace

base::Result<v1::Usage> UsageCalls::get(const v1::GetUsageRequest& request,
                                        const Peer& peer) const {
  const LedgerView view(context_.reader, peer.caller, os::wall_now());
  TRY_ASSIGN(const UsageQuestion question,
             to_question(request, context_.reader, view, peer.caller));
  accounting::UsageSum sum(question.query, view.prices());
  bool has_lines = false;
  bool has_running = false;
  const auto add = [&](const model::LedgerLine& line) {
    if (!question.is_of(line)) return false;
    sum.add(line);
    has_lines = true;
    return true;
  };
  const store::LedgerQuery lines = question.lines();
  TRY(view.visit_over(lines, [&](const model::LedgerLine& line) -> base::Status {
    add(line);
    return {};
  }));
  TRY(view.visit_running(lines, [&](const model::LedgerLine& line) -> base::Status {
    if (add(line) && line.kind == model::LedgerKind::kHeld) has_running = true;
    return {};
  }));
  if (!has_lines && question.jobs && question.jobs->unknown) {
    return std::unexpected(*question.jobs->unknown);
  }
  if (!sum.is_complete()) {
    return base::invalid("group_by",
                         fmt::format("group_by: there are more than {} groups: ask for a shorter "
                                     "window, a longer step or fewer fields",
                                     question.query.max_groups));
  }
  v1::Usage out;
  to_proto(question.window.from, *out.mutable_since());
  to_proto(question.window.to, *out.mutable_until());
  *out.mutable_group_by() = request.group_by();
  if (request.has_step()) out.set_step(request.step());
  out.set_currency(view.currency());
  put_usage(question.query, sum, out);
  out.set_has_running(has_running);
  return out;
}

base::Result<v1::ListLedgerResponse> UsageCalls::list_lines(const v1::ListLedgerRequest& request,
                                                            const Peer& peer) const {
  const LedgerView view(context_.reader, peer.caller, os::wall_now());
  TRY_ASSIGN(const UsageQuestion question,
             to_question(request, context_.reader, view, peer.caller));
  TRY_ASSIGN(const std::uint64_t first, first_line_of(request));
  const std::uint64_t end = first + (request.has_limit() ? request.limit() : kDefaultLines);
  v1::ListLedgerResponse out;
  out.set_currency(view.currency());
  std::uint64_t place = 0;
  const store::LedgerQuery lines = question.lines();
  TRY(view.visit_over(lines, [&](const model::LedgerLine& line) -> base::Status {
    if (!question.is_of(line)) return {};
    if (place >= first && place < end) to_proto(line, view.prices(), *out.add_lines());
    ++place;
    return {};
  }));
  if (place > end) {
    out.set_next_page(fmt::to_string(end));
  } else if (request.with_running()) {
    TRY(view.visit_running(lines, [&](const model::LedgerLine& line) -> base::Status {
      if (!question.is_of(line)) return {};
      v1::LedgerLine& shown = *out.add_lines();
      to_proto(line, view.prices(), shown);
      shown.set_running(true);
      return {};
    }));
  }
  if (out.lines().empty() && question.jobs && question.jobs->unknown) {
    return std::unexpected(*question.jobs->unknown);
  }
  return out;
}

base::Result<v1::MonthlyReport> UsageCalls::monthly(const v1::GetMonthlyReportRequest& request,
                                                    const Peer& peer) const {
  const LedgerView view(context_.reader, peer.caller, os::wall_now());
  accounting::MonthlyQuestion question;
  TRY_ASSIGN(question.month, month_of(request, view.now()));
  TRY_ASSIGN(const Render render, renderer_of(request));
  TRY_ASSIGN(question.is_final, is_closed(view, question.month));
  if (request.has_team()) question.teams = teams_of(request.team(), view);
  question.with_fleet = view.sees_fleet() && question.teams.empty();
  question.currency = view.currency();
  accounting::MonthlySum sum(question, view.prices());
  TRY(view.visit(lines_in(sum.span()), [&](const model::LedgerLine& line) -> base::Status {
    sum.add(line);
    return {};
  }));
  const accounting::MonthlyReport report = sum.report();
  v1::MonthlyReport out;
  to_proto(report, out);
  out.set_partial(!view.sees_all_jobs());
  if (render != nullptr) out.set_document(render(report));
  return out;
}

base::Result<v1::Balance> UsageCalls::balance(const v1::GetBalanceRequest& request,
                                              const Peer& peer) const {
  const LedgerView view(context_.reader, peer.caller, os::wall_now());
  TRY_ASSIGN(const UsageWindow window, to_window(request, view.now()));
  const store::LedgerQuery lines = window.query();
  accounting::Balance balance({lines.from, lines.to}, view.prices());
  TRY(view.visit(lines, [&](const model::LedgerLine& line) -> base::Status {
    balance.add(line);
    return {};
  }));
  v1::Balance out;
  to_proto(window.from, *out.mutable_since());
  to_proto(window.to, *out.mutable_until());
  out.set_currency(view.currency());
  to_proto(balance.report(), out);
  return out;
}

}  // namespace gpu_platform::api
