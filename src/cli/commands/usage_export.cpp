#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "accounting/focus.h"
#include "accounting/monthly_documents.h"
#include "base/month.h"
#include "base/parse.h"
#include "base/utc.h"
#include "cli/commands.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"
#include "cli/words/input.h"
#include "cli/words/pages.h"
#include "gpu_platform/v1/usage.pb.h"
#include "http/http.h"
#include "os/replaced_file.h"

// A month of the ledger for the programs of others.

namespace gpu_platform::cli {

namespace {

constexpr PagedList kExportLedger{"/v1/ledger", "lines", 10'000};

struct ExportOptions {
  std::optional<std::string> month, format, version, account, file;
};

struct ExportQuestion {
  accounting::FocusQuestion focus;
  bool is_ledger = false;  // the lines as they are
};

// Errors name the option.
base::Result<ExportQuestion> question_of_export(const ExportOptions& options, base::Instant now) {
  ExportQuestion question;
  const std::string format = options.format.value_or("focus");
  if (format != "focus" && format != "ledger") {
    return base::invalid("--format", fmt::format("'{}' is not one of focus, ledger", format));
  }
  question.is_ledger = format == "ledger";
  if (question.is_ledger && (options.version || options.account)) {
    return base::invalid(options.version ? "--focus-version" : "--account",
                         "belongs to --format focus");
  }
  const auto version = accounting::parse_focus_version(options.version.value_or("1.3"));
  if (!version) {
    return base::invalid("--focus-version",
                         fmt::format("'{}' is not one of 1.2, 1.3, 1.4", *options.version));
  }
  question.focus.version = *version;
  question.focus.account = options.account.value_or("gpu-platform");
  question.focus.month = base::plus_months(base::month_of(now), -1);
  if (!options.month) return question;
  const auto month = base::parse_month(*options.month);
  if (!month) {
    return base::invalid("--month", fmt::format("'{}' is no month, as 2026-10 is", *options.month));
  }
  if (base::begin_of(*month) > now) {
    return base::invalid("--month", fmt::format("{} lies in the future", *options.month));
  }
  question.focus.month = *month;
  return question;
}

// ---- lines as they come

// The enumerator whose name it is; the first one if it is none.
template <class Enum>
Enum named(std::string_view name, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (to_string(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  }
  return Enum{};
}

model::Millis millis_at(const google::protobuf::Timestamp& at) {
  const auto time = time_of(at);
  return time ? model::millis_of(*time) : 0;
}

std::optional<base::MicroUsd> money_at(bool is_known, const std::string& text) {
  if (!is_known) return std::nullopt;
  const auto amount = base::parse_signed_money(text);
  return amount ? std::optional(*amount) : std::nullopt;
}

model::LedgerKind ledger_kind(std::string_view name) {
  if (name == "held") return model::LedgerKind::kHeld;
  return name == "rest" ? model::LedgerKind::kRest : model::LedgerKind::kCorrection;
}

accounting::FocusLine focus_line(const v1::LedgerLine& line) {
  accounting::FocusLine out{.job = line.job(),
                            .per_hour = money_at(line.has_price_per_hour(), line.price_per_hour())};
  model::LedgerLine& to = out.line;
  to.kind = ledger_kind(line.line());
  to.node = line.node();
  to.gpu_uuid = line.gpu_id();
  to.gpu_type = line.gpu_type();
  to.capacity = model::parse_capacity_class(line.capacity()).value_or(to.capacity);
  to.share = base::GpuShare(line.gpu_share());
  to.price = line.price_id();
  to.from = millis_at(line.from());
  to.started = millis_at(line.started_at());
  to.ended = millis_at(line.ended_at());
  to.to = millis_at(line.to());
  to.rest = named<model::RestKind>(line.rest(), model::kRestKinds);
  to.attempt.attempt = line.attempt();
  to.user = line.user();
  to.team = line.team();
  to.project = line.project();
  to.job_name = line.job_name();
  // By key: the order of a map of messages is not one.
  const std::map<std::string, std::string> labels(line.labels().begin(), line.labels().end());
  for (const auto& [key, value] : labels) to.labels.push_back({key, value});
  to.not_billed = named<model::NotBilled>(line.not_billed(), model::kNotBilledReasons);
  to.discount = line.discount_basis_points();
  to.cpus = line.cpus();
  to.memory_mib = static_cast<std::int64_t>(line.memory_mib());
  to.core_hour = money_at(line.has_core_hour(), line.core_hour()).value_or(base::MicroUsd());
  to.gib_hour = money_at(line.has_gib_hour(), line.gib_hour()).value_or(base::MicroUsd());
  to.amount = money_at(line.has_amount(), line.amount()).value_or(base::MicroUsd());
  to.text = line.reason();
  return out;
}

// ---- the documents

std::string cell_of_time(const google::protobuf::Timestamp& at) {
  const auto time = time_of(at);
  return time ? base::utc(*time, base::Fraction::kMilliseconds) : std::string();
}

constexpr std::string_view kLedgerHeader =
    "line,node,gpu_id,gpu_type,capacity,gpu_share,price_id,price_per_hour,from,started_at,"
    "ended_at,to,rest,job,attempt,segment,user,team,project,job_name,priority,not_billed,"
    "discount_basis_points,cpus,memory_mib,core_hour,gib_hour,amount,reason,by,cost\r\n";

std::string ledger_row(const v1::LedgerLine& line) {
  const auto text = accounting::csv_text;
  const bool is_held = line.has_job();
  const std::string_view no_time;
  return fmt::format(
      "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},"
      "{}\r\n",
      line.line(), text(line.node()), text(line.gpu_id()), text(line.gpu_type()), line.capacity(),
      line.gpu_share(), line.price_id(), line.price_per_hour(), cell_of_time(line.from()),
      is_held ? cell_of_time(line.started_at()) : no_time,
      is_held ? cell_of_time(line.ended_at()) : no_time, cell_of_time(line.to()), line.rest(),
      text(line.job()), line.attempt(), line.segment(), text(line.user()), text(line.team()),
      text(line.project()), text(line.job_name()), line.priority(), line.not_billed(),
      line.discount_basis_points(), line.cpus(), line.memory_mib(), line.core_hour(),
      line.gib_hour(), line.amount(), text(line.reason()), text(line.by()), line.cost());
}

// What is collected from the pages of lines.
struct Export {
  accounting::FocusSum sum;
  std::string ledger;  // rows
  std::string currency;
  std::uint64_t running = 0;  // lines of what still goes on, which are left out
  bool has_unpriced = false;
};

void add_page(const ExportQuestion& question, const v1::ListLedgerResponse& page, Export& out) {
  out.currency = page.currency();
  for (const v1::LedgerLine& line : page.lines()) {
    if (line.running()) {
      if (line.has_job()) ++out.running;
      continue;
    }
    if (question.is_ledger) {
      out.ledger += ledger_row(line);
      continue;
    }
    const bool is_gpu = !line.gpu_id().empty();
    if (is_gpu && !line.has_price_per_hour()) out.has_unpriced = true;
    out.sum.add(focus_line(line));
  }
}

std::string document_of(ExportQuestion question, const Export& collected) {
  if (question.is_ledger) return std::string(kLedgerHeader) + collected.ledger;
  question.focus.currency = collected.currency;
  return accounting::focus_csv(question.focus, collected.sum.rows());
}

void put_notes(Console& console, const ExportQuestion& question, const Export& collected,
               base::Instant now) {
  if (base::end_of(question.focus.month) > now) {
    console.note("the month is not over: what is exported is what has ended");
  } else if (collected.running > 0) {
    console.note("jobs that began in the month still run: their lines come when they end");
  }
  if (collected.has_unpriced) {
    console.note("some GPUs have no price: their rows cost 0 and have x_Unpriced");
  }
}

}  // namespace

int run_usage_export(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  ExportOptions options;
  Arguments arguments(text);
  arguments.option("--month", options.month, "MONTH", "as 2026-10; in UTC (default: the last one)")
      .option("--format", options.format, "FORMAT",
              "focus: bills as the FinOps Foundation defines them; ledger: the lines as they are "
              "(default: focus)")
      .option("--focus-version", options.version, "VERSION", "1.2, 1.3 or 1.4 (default: 1.3)")
      .option("--account", options.account, "NAME",
              "the billing account in the rows (default: gpu-platform)")
      .option("-o,--output", options.file, "FILE",
              "write it there; a file of that name is replaced (default: print it)");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const base::Instant now = console.process_environment().now();
  const auto question = question_of_export(options, now);
  if (!question) {
    return usage_error(console,
                       fmt::format("{}: {}", question.error().field, question.error().message),
                       text.name);
  }
  std::string query;
  http::append_query(query, "since", base::utc(base::begin_of(question->focus.month)));
  http::append_query(query, "until", base::utc(base::end_of(question->focus.month)));
  http::append_query(query, "with_running", "true");
  Export collected{.sum = accounting::FocusSum(question->focus)};
  const auto fetched = fetch_messages<v1::ListLedgerResponse>(
      *client, kExportLedger, query, UINT64_MAX, {}, [&](const v1::ListLedgerResponse& page) {
        add_page(*question, page, collected);
        return page.lines_size();
      });
  if (!fetched) return report(console, fetched.error(), false);
  put_notes(console, *question, collected, now);
  const std::string document = document_of(*question, collected);
  if (!options.file) {
    console.out(document);
    return console.out_failed() ? kFailure : kOk;
  }
  constexpr mode_t kReadableByAll = 0644;
  const auto written = os::replace_file(*options.file, document,
                                        kReadableByAll & ~console.process_environment().umask);
  if (written) return kOk;
  console.error(fmt::format("--output '{}': {}", harmless(*options.file), written.error().message));
  return kFailure;
}

}  // namespace gpu_platform::cli
