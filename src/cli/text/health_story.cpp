#include "cli/text/health_story.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "cli/client_names.h"
#include "cli/text/gpu_text.h"
#include "cli/text/message_text.h"
#include "cli/text/table.h"

namespace gpu_platform::cli {

namespace {

// More of them only with -o wide.
constexpr int kPiecesShown = 24;
constexpr std::size_t kIndent = 2;

struct KindText {
  std::string_view kind;
  // "{}" stands for the value or the code; "|" divides the words for one and for several.
  std::string_view text;
  bool has_code = false;
};
constexpr std::array kKindTexts = {
    KindText{"XID", "XID {}", true},
    KindText{"UNAVAILABLE", "the driver says that it is not available"},
    KindText{"POISON", "poisoned data was used"},
    KindText{"ECC_CORRECTED", "{} corrected ECC error|{} corrected ECC errors"},
    KindText{"ECC_UNCORRECTED", "{} uncorrected ECC error|{} uncorrected ECC errors"},
    KindText{"ROWS_REMAPPED", "{} row of memory remapped|{} rows of memory remapped"},
    KindText{"PAGES_RETIRED", "{} page of memory retired|{} pages of memory retired"},
    KindText{"PCIE_REPLAYS", "{} PCIe replay|{} PCIe replays"},
    KindText{"NVLINK_ERRORS", "{} NVLink error|{} NVLink errors"},
    KindText{"REMAP_PENDING", "rows wait for a reset to be remapped"},
    KindText{"REMAP_FAILED", "a row could not be remapped"},
    KindText{"RETIREMENT_PENDING", "pages wait for a reset to be retired"},
    KindText{"HEAT", "hot: {} °C"},
    KindText{"MEMORY_HEAT", "its memory is hot: {} °C"},
    KindText{"SLOWDOWN", "the hardware holds the clocks down"},
    KindText{"PCIE_WIDTH", "PCIe has {} lane|PCIe has {} lanes"},
    KindText{"NVLINK_DOWN", "{} NVLink is down|{} NVLinks are down"},
    KindText{"NOT_ANSWERING", "it does not answer"},
    KindText{"LOST", "it is lost: off the bus, or the driver does not list it"},
    KindText{"SLOW", "slow: {} % of the speed of its peers"},
    KindText{"JOB_STARTED", "a job started"},
    KindText{"START_FAILED", "a job could not start"},
    KindText{"JOB_HUNG", "a job hung"},
    KindText{"NODE_CONDITION", "a condition of the node"},
    KindText{"NODE_RESTARTED", "the node was booted"},
    KindText{"COMPLAINT", "a person says that it is sick"},
    KindText{"CLEARED", "brought online; what was before does not count"},
};

std::string filled(std::string_view text, std::int64_t value) {
  const std::size_t divider = text.find('|');
  if (divider != std::string_view::npos) {
    text = value == 1 ? text.substr(0, divider) : text.substr(divider + 1);
  }
  const std::size_t place = text.find("{}");
  if (place == std::string_view::npos) return std::string(text);
  return fmt::format("{}{}{}", text.substr(0, place), value, text.substr(place + 2));
}

// An exit code as the evidence has it: 128 + the signal for a signal.
std::string end_text(std::uint32_t code) {
  if (code == 0) return "ended well";
  if (code > 128 && code <= 128 + 64) return fmt::format("ended by signal {}", code - 128);
  return fmt::format("ended with exit code {}", code);
}

// The kinds whose code decides what happened.
std::string text_by_code(std::string_view kind, std::uint32_t code) {
  if (kind == "JOB_ENDED") return "a job " + end_text(code);
  constexpr std::uint32_t kRefused = 2;
  constexpr std::uint32_t kUntried = 3;
  if (kind == "RESET") {
    return code == 0          ? "reset"
           : code == kRefused ? "no reset is allowed"
           : code == kUntried ? "the reset could not begin"
                              : "the reset failed";
  }
  if (kind == "CHECK") {
    return code == 0          ? "the check passed"
           : code == kRefused ? "no check is allowed"
           : code == kUntried ? "the check could not begin"
                              : "the check failed";
  }
  constexpr std::array kActions = {"asks for nothing any more", "asks for a reset",
                                   "asks for a reboot of the node", "asks to drain its peers",
                                   "asks to drain it and to reset it"};
  if (kind != "RECOVERY_ACTION") return {};
  return fmt::format("the driver {}",
                     code < kActions.size() ? kActions.at(code) : "asks for a recovery");
}

std::string plain_text(const v1::Evidence& piece) {
  if (std::string text = text_by_code(piece.kind(), piece.code()); !text.empty()) return text;
  const auto* const known = std::ranges::find(kKindTexts, piece.kind(), &KindText::kind);
  if (known == kKindTexts.end()) return piece.kind();
  return filled(known->text, known->has_code ? piece.code() : piece.value());
}

std::string indented_table(const Table& table, const PageStyle& style) {
  const std::size_t width = style.width == 0 ? 0 : style.width - kIndent;
  const std::string lines = table.render({.width = width});
  std::string text;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size() - 1) + 1;
    text += std::string(kIndent, ' ') + lines.substr(begin, end - begin);
    begin = end;
  }
  return text;
}

std::string indented_text(std::string_view text, std::string_view first, const PageStyle& style) {
  const std::string rest(first.size(), ' ');
  std::string lines;
  const std::size_t width = style.width == 0 ? 0 : style.width - first.size();
  for (const std::string& line : wrapped(harmless(with_local_times(text)), width)) {
    lines += fmt::format("{}{}\n", lines.empty() ? first : rest, line);
  }
  return lines;
}

std::string when(const google::protobuf::Timestamp& field) {
  const auto at = time_of(field);
  return at ? short_time(*at) : std::string();
}

std::string parties_of(const v1::GpuHealth& health, const PageStyle& style) {
  if (health.taints().empty()) return {};
  Table table({{"PARTY"},
               {"EFFECT"},
               {"SINCE"},
               {"BY", Column::Align::kLeft, std::nullopt, 1},
               {.title = "WHY", .cut_to = 20, .wraps = true}});
  for (const v1::GpuTaint& taint : health.taints()) {
    table.add({as_word(taint.source()), as_word(taint.effect()), when(taint.at()), taint.by(),
               with_local_times(taint.text())});
  }
  return "\nKept from work by:\n" + indented_table(table, style);
}

std::string verdict_of(const v1::GpuHealth& health, const PageStyle& style) {
  if (!health.has_verdict()) return {};
  const v1::GpuVerdict& verdict = health.verdict();
  const std::string head =
      fmt::format("Verdict: {}, cause: {}, {} % sure that the GPU is at fault{}",
                  as_word(verdict.action()), as_word(verdict.fault()), verdict.confidence_percent(),
                  verdict.rule().empty() ? "" : fmt::format(" (rule {})", verdict.rule()));
  std::string page = "\n" + indented_text(head, "", style);
  if (!verdict.text().empty()) page += indented_text(verdict.text(), "  ", style);
  for (const std::string& reason : verdict.reasons()) {
    if (reason != verdict.text()) page += indented_text(reason, "  - ", style);
  }
  if (!health.withheld().empty()) page += indented_text(health.withheld(), "  ! ", style);
  return page;
}

std::string back_of(const v1::GpuHealth& health, const PageStyle& style) {
  std::string text;
  for (const std::string& way : ways_back(health)) text += indented_text(way, "  - ", style);
  return text.empty() ? text : "\nWhat brings it back:\n" + text;
}

// Starts and ends of jobs have a section of their own.
bool is_of_jobs(const v1::Evidence& piece) {
  return piece.kind() == "JOB_STARTED" || piece.kind() == "JOB_ENDED";
}

std::string timeline_of(const v1::GpuHealth& health, const PageStyle& style,
                        const JobLabels& names) {
  std::vector<const v1::Evidence*> pieces;
  for (const v1::Evidence& piece : health.evidence()) {
    if (!is_of_jobs(piece)) pieces.push_back(&piece);
  }
  if (pieces.empty()) return {};
  const auto all = static_cast<int>(pieces.size());
  const int left_out = style.is_wide ? 0 : std::max(0, all - kPiecesShown);
  Table table({{"WHEN"},
               {"TIMES", Column::Align::kRight},
               {.title = "WHAT", .cut_to = 24, .wraps = true},
               {"JOB", Column::Align::kLeft, 6, 2},
               {"SEEN BY", Column::Align::kLeft, std::nullopt, 1}});
  for (int i = left_out; i < all; ++i) {
    const v1::Evidence& piece = *pieces[static_cast<std::size_t>(i)];
    table.add({when(piece.at()), piece.count() > 1 ? fmt::format("{}", piece.count()) : "1",
               with_local_times(evidence_text(piece)),
               piece.job().empty() ? "" : label_of(names, piece.job()), as_word(piece.source())});
  }
  std::string text = "\nEvidence:\n" + indented_table(table, style);
  if (left_out > 0) text += fmt::format("  and {} earlier: -o wide shows them\n", left_out);
  return text;
}

// A job as its pieces of evidence tell it.
struct JobThere {
  std::string user, program, started, ended, how;
  std::size_t order = 0;
};

std::string jobs_there(const v1::GpuHealth& health, const PageStyle& style,
                       const JobLabels& names) {
  std::map<std::string, JobThere> jobs;
  for (const v1::Evidence& piece : health.evidence()) {
    if (piece.job().empty()) continue;
    JobThere& job = jobs.try_emplace(piece.job(), JobThere{.order = jobs.size()}).first->second;
    if (!piece.user().empty()) job.user = piece.user();
    if (!piece.program().empty()) job.program = piece.program();
    if (piece.kind() == "JOB_STARTED") job.started = when(piece.at());
    if (piece.kind() == "START_FAILED") job.how = "could not start";
    if (piece.kind() == "JOB_HUNG") job.how = "hung";
    if (piece.kind() != "JOB_ENDED") continue;
    job.ended = when(piece.at());
    job.how = end_text(piece.code());
  }
  if (jobs.empty()) return {};
  std::vector<std::pair<std::string, JobThere>> rows(jobs.begin(), jobs.end());
  std::ranges::sort(rows, {}, [](const auto& row) { return row.second.order; });
  Table table({{"JOB", Column::Align::kRight},
               {"USER", Column::Align::kLeft, 6, 2},
               {"PROGRAM", Column::Align::kLeft, 8, 1},
               {"STARTED", Column::Align::kLeft, std::nullopt, 3},
               {"ENDED"},
               {.title = "HOW", .cut_to = 12, .wraps = true}});
  for (const auto& [id, job] : rows) {
    table.add({label_of(names, id), job.user, job.program, job.started, job.ended, job.how});
  }
  return "\nJobs there:\n" + indented_table(table, style);
}

std::string gpu_name(const v1::Gpu& gpu) {
  return fmt::format("{}:{}", gpu.node(), gpu.index());
}

std::string way_back(const v1::GpuHealth& health, const v1::GpuTaint& taint) {
  const std::string online = fmt::format("'gpu-platform online {}'", gpu_name(health.gpu()));
  const std::string& party = taint.source();
  if (party == "OPERATOR") {
    const auto until = time_of(taint.until());
    return until ? fmt::format("operator: it ends at {}, or by {}", local_time(*until), online)
                 : fmt::format("operator: {}", online);
  }
  if (party == "HEALTH") {
    const std::string& next = health.verdict().next();
    return fmt::format("health: {}", next.empty() ? online : next);
  }
  if (party == "RESET") return "reset: it ends with the reset, or the check";
  if (party == "DRIVER") return "driver: the node's driver lists the GPU again";
  if (party == "PROCESSES") return "processes: the processes of no job end";
  if (party == "CLUSTER") return "cluster: its cluster lets it work again";
  if (party == "CONNECTION") return "connection: its node reports again";
  if (party == "HOOKS") return fmt::format("hooks: {}", online);
  return fmt::format("{}: {}", as_word(party), online);
}

}  // namespace

std::string evidence_text(const v1::Evidence& piece) {
  std::string text = plain_text(piece);
  if (piece.is_over()) text = "over: " + text;
  if (!piece.text().empty()) text += ": " + piece.text();
  return text;
}

std::vector<std::string> ways_back(const v1::GpuHealth& health) {
  std::vector<std::string> ways;
  for (const v1::GpuTaint& taint : health.taints()) ways.push_back(way_back(health, taint));
  return ways;
}

std::string health_story(const v1::GpuHealth& health, const PageStyle& style,
                         const JobLabels& names) {
  return parties_of(health, style) + verdict_of(health, style) + back_of(health, style) +
         timeline_of(health, style, names) + jobs_there(health, style, names);
}

}  // namespace gpu_platform::cli
