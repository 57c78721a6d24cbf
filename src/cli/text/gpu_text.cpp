#include "cli/text/gpu_text.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/text/health_story.h"
#include "cli/text/message_text.h"
#include "cli/text/share_text.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

// Clocks held down for these are part of the work.
bool is_harmless_throttle(std::string_view reason) {
  constexpr std::array kHarmless = {"CLOCK_SETTING", "POWER_CAP", "SYNC_BOOST", "DISPLAY_CLOCK"};
  return std::ranges::find(kHarmless, reason) != kHarmless.end();
}

std::string latest_xid(const v1::GpuHealth& health, base::Instant now) {
  if (health.xids().empty()) return {};
  const v1::Xid& latest = health.xids(0);
  std::string text = fmt::format("XID {}", latest.xid());
  if (const auto at = time_of(latest.at())) text += fmt::format(" {} ago", age(now - *at));
  const int before = health.xids_size() - 1;
  return before > 0 ? fmt::format("{} and {} before", text, before) : text;
}

std::string size_of(bool is_known, std::uint64_t bytes) {
  return is_known ? readable_size(as_signed(bytes)) : std::string();
}

std::string yes_or_no(bool is_known, bool value) {
  if (!is_known) return {};
  return value ? "yes" : "no";
}

// "3 corrected, 0 uncorrected"; what is not known is left out.
std::string pair_of(const std::string& first, const std::string& second) {
  if (first.empty() || second.empty()) return first + second;
  return first + ", " + second;
}

std::string pcie_of(const v1::GpuHealth& health) {
  std::vector<std::string> parts;
  const auto add = [&](bool is_known, const std::string& text) {
    if (is_known) parts.push_back(text);
  };
  const auto speed = [](std::uint64_t bytes) { return readable_size(as_signed(bytes)); };
  add(health.has_pcie_generation(), fmt::format("generation {}", health.pcie_generation()));
  add(health.has_pcie_width(), fmt::format("x{}", health.pcie_width()));
  add(health.has_pcie_sent_bytes_per_second(),
      speed(health.pcie_sent_bytes_per_second()) + "/s sent");
  add(health.has_pcie_received_bytes_per_second(),
      speed(health.pcie_received_bytes_per_second()) + "/s received");
  add(health.has_pcie_replays(), counted(health.pcie_replays(), "replay"));
  return joined(parts, ", ");
}

std::string time_text(const google::protobuf::Timestamp& field, base::Instant now) {
  const auto at = time_of(field);
  return at ? fmt::format("{} ({} ago)", local_time(*at), age(now - *at)) : std::string();
}

std::string changed_text(const v1::Gpu& gpu, base::Instant now) {
  const std::string at = time_text(gpu.changed_at(), now);
  if (gpu.changed_by().empty()) return at;
  return fmt::format("by {}{}{}", gpu.changed_by(), at.empty() ? "" : ", ", at);
}

std::string indented(const std::string& lines) {
  std::string text;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size() - 1) + 1;
    text += "  " + lines.substr(begin, end - begin);
    begin = end;
  }
  return text;
}

std::string processes_of(const v1::GpuHealth& health, const JobLabels& names) {
  if (health.processes().empty()) return {};
  Table table({{"PID", Align::kRight}, {"USER"}, {"COMMAND"}, {"MEMORY", Align::kRight}, {"JOB"}});
  for (const v1::GpuProcess& process : health.processes()) {
    table.add({fmt::format("{}", process.pid()), process.user(), process.command(),
               size_of(process.has_memory_bytes(), process.memory_bytes()),
               process.job().empty() ? "none" : label_of(names, process.job())});
  }
  return "\nProcesses:\n" + indented(table.render({}));
}

std::string xids_of(const v1::GpuHealth& health, base::Instant now) {
  if (health.xids().empty()) return {};
  Table table({{"XID", Align::kRight}, {"WHEN"}});
  for (const v1::Xid& xid : health.xids()) {
    table.add({fmt::format("{}", xid.xid()), time_text(xid.at(), now)});
  }
  return "\nErrors reported by the driver:\n" + indented(table.render({}));
}

std::string jobs_of(const v1::Gpu& gpu, const JobLabels& labels) {
  std::vector<std::string> jobs;
  for (const std::string& id : gpu.jobs()) {
    jobs.push_back(label_of(labels, id) + share_beside(gpu, id));
  }
  return joined(jobs, ", ");
}

std::string index_of(const v1::Gpu& gpu) {
  return fmt::format("{}", gpu.index());
}

// A condition of the node lasts that does nothing: either it is no fault of GPUs, or no list knows
// it. What does something is the reason of the GPU's state.
bool counts_a_condition(const v1::GpuVerdict& verdict) {
  return verdict.action() == "COUNT" &&
         (verdict.rule() == "node-fault" || verdict.rule().starts_with("condition-"));
}

}  // namespace

std::string marked_name(const std::string& name, bool is_emulated) {
  return is_emulated ? name + " (emulated)" : name;
}

std::string short_reason(const v1::Gpu& gpu) {
  const std::string of_node = fmt::format("node {} is {}: ", gpu.node(), state_name(gpu));
  if (!gpu.reason().starts_with(of_node)) return with_local_times(gpu.reason());
  return "node: " + with_local_times(gpu.reason().substr(of_node.size()));
}

bool all_emulated(const ClusterGpus& gpus) {
  return !gpus.empty() && std::ranges::all_of(gpus, &v1::Gpu::emulated);
}

std::string emulated_mark(std::size_t emulated, std::size_t all) {
  if (emulated == 0) return {};
  return emulated == all ? " (emulated)" : fmt::format(" ({} emulated)", emulated);
}

std::string memory_of(std::optional<std::uint64_t> used, std::uint64_t total) {
  const std::string whole = readable_size(as_signed(total));
  return used ? readable_size(as_signed(*used)) + "/" + whole : whole;
}

std::string memory_of(const v1::Gpu& gpu) {
  return memory_of(
      gpu.has_memory_used_bytes() ? std::optional(gpu.memory_used_bytes()) : std::nullopt,
      gpu.memory_total_bytes());
}

std::string utilization_of(const v1::Gpu& gpu) {
  return if_known(gpu.has_utilization_percent(), gpu.utilization_percent(), "{:.0f} %");
}

std::string temperature_of(const v1::Gpu& gpu) {
  return if_known(gpu.has_temperature_c(), gpu.temperature_c(), "{:.0f} °C");
}

std::string power_of(const v1::Gpu& gpu) {
  return if_known(gpu.has_power_watts(), gpu.power_watts(), "{:.0f} W");
}

bool is_in_service(const v1::Gpu& gpu) {
  return gpu.state() == v1::GPU_STATE_AVAILABLE || gpu.state() == v1::GPU_STATE_ALLOCATED ||
         gpu.state() == v1::GPU_STATE_IN_USE || gpu.state() == v1::GPU_STATE_CLEANING;
}

std::size_t unnamed_unmanaged_processes(const v1::Gpu& gpu) {
  const bool is_named = gpu.reason().find("unmanaged processes") != std::string::npos;
  return is_named ? 0 : static_cast<std::size_t>(gpu.unmanaged_processes_size());
}

Table gpu_table(const ClusterGpus& gpus, const JobLabels& labels, bool has_marks) {
  const bool has_parts =
      std::ranges::any_of(gpus, [](const v1::Gpu& gpu) { return !gpu.parts().empty(); });
  std::vector<Column> columns = {{"NODE", Align::kLeft, 12},
                                 {"GPU", Align::kRight},
                                 {"TYPE", Align::kLeft, 8, 2},
                                 {.title = "STATE", .is_state = true},
                                 {.title = "JOBS", .cut_to = 8, .wraps = true}};
  if (has_parts) columns.push_back({"FREE", Align::kRight});
  const Column rest[] = {
      {"MEMORY", Align::kRight, std::nullopt, 1},       {"UTIL", Align::kRight},
      {"TEMP", Align::kRight, std::nullopt, 3},         {"POWER", Align::kRight, std::nullopt, 4},
      {.title = "REASON", .cut_to = 22, .wraps = true}, {"UUID", Align::kLeft, 12, 5}};
  columns.insert(columns.end(), std::begin(rest), std::end(rest));
  Table table(std::move(columns));
  for (const v1::Gpu& gpu : gpus) {
    std::vector<std::string> row = {marked_name(gpu.node(), gpu.emulated() && has_marks),
                                    index_of(gpu), gpu.type(), state_name(gpu),
                                    jobs_of(gpu, labels)};
    if (has_parts) row.push_back(share_text(gpu.free_share()));
    const std::string readings[] = {memory_of(gpu), utilization_of(gpu), temperature_of(gpu),
                                    power_of(gpu),  short_reason(gpu),   gpu.uuid()};
    row.insert(row.end(), std::begin(readings), std::end(readings));
    table.add(std::move(row));
  }
  return table;
}

Table parts_table(const ClusterGpus& gpus, const JobLabels& labels) {
  Table table({{"NODE", Align::kLeft, 12},
               {"GPU", Align::kRight},
               {"MODE"},
               {.title = "JOBS", .cut_to = 8, .wraps = true},
               {"FREE", Align::kRight}});
  for (const v1::Gpu& gpu : gpus) {
    const std::string mode = gpu.parts().empty() ? "" : mode_word(gpu.parts(0).mode());
    table.add(
        {gpu.node(), index_of(gpu), mode, jobs_of(gpu, labels), share_text(gpu.free_share())});
  }
  return table;
}

Table changed_table(const ClusterGpus& gpus, const JobLabels& names) {
  const bool is_marked_once = all_emulated(gpus);
  Table table({{"NODE", Align::kLeft, 12},
               {"GPU", Align::kRight},
               {"TYPE", Align::kLeft, 8, 1},
               {.title = "STATE", .is_state = true},
               {.title = "JOBS", .cut_to = 6, .wraps = true},
               {.title = "REASON", .cut_to = 16, .wraps = true}});
  for (const v1::Gpu& gpu : gpus) {
    table.add({marked_name(gpu.node(), gpu.emulated() && !is_marked_once), index_of(gpu),
               gpu.type(), state_name(gpu), jobs_of(gpu, names), short_reason(gpu)});
  }
  return table;
}

std::vector<std::string> troubles_of(const v1::GpuHealth& health, base::Instant now) {
  std::vector<std::string> troubles;
  const v1::Gpu& gpu = health.gpu();
  const std::string& reason = gpu.reason();
  if (!reason.empty()) troubles.push_back(reason);
  if (reason.empty() && !is_in_service(gpu)) troubles.push_back(state_name(gpu));
  const std::string& problem = health.problem();
  if (!problem.empty() && reason.find(problem) == std::string::npos) troubles.push_back(problem);
  if (health.ecc_uncorrected() > 0) {
    troubles.push_back(counted(health.ecc_uncorrected(), "uncorrected ECC error"));
  }
  if (health.remap_failed()) troubles.emplace_back("a row could not be remapped");
  if (health.remap_pending()) troubles.emplace_back("rows wait for a reset to be remapped");
  const std::string& action = health.recovery_action();
  if (!action.empty() && action != "NONE" && action != "UNKNOWN")
    troubles.push_back("the driver wants " + action);
  if (const std::string xid = latest_xid(health, now); !xid.empty()) troubles.push_back(xid);
  for (const std::string& held : health.throttle_reasons()) {
    if (!is_harmless_throttle(held)) troubles.push_back("clocks are held down: " + held);
  }
  if (const std::size_t count = unnamed_unmanaged_processes(gpu); count > 0) {
    troubles.push_back(fmt::format("{} process{} of no job", count, count == 1 ? "" : "es"));
  }
  if (counts_a_condition(health.verdict())) troubles.push_back(health.verdict().text());
  if (!health.withheld().empty()) troubles.push_back(health.withheld());
  return troubles;
}

namespace {

// GPUs of one node, one behind the other, that show the same; one GPU without trouble.
struct HealthRow {
  std::vector<const v1::GpuHealth*> gpus;
  std::string trouble;

  bool takes(const v1::GpuHealth& next, const std::string& its_trouble) const {
    const v1::Gpu& first = gpus.front()->gpu();
    return !trouble.empty() && trouble == its_trouble && first.node() == next.gpu().node() &&
           first.type() == next.gpu().type() && first.state() == next.gpu().state();
  }
};

std::vector<HealthRow> health_rows(const GpuHealthList& healths, base::Instant now) {
  std::vector<HealthRow> rows;
  for (const v1::GpuHealth& health : healths) {
    std::string trouble = joined(troubles_of(health, now), "; ");
    const std::string& next = health.verdict().next();
    if (!trouble.empty() && !next.empty()) trouble += "; next: " + next;
    if (rows.empty() || !rows.back().takes(health, trouble)) {
      rows.push_back({{}, std::move(trouble)});
    }
    rows.back().gpus.push_back(&health);
  }
  return rows;
}

// How long the first of them has been out of service.
std::string since_of(const HealthRow& row, base::Instant now) {
  std::optional<base::Instant> first;
  for (const v1::GpuHealth* health : row.gpus) {
    const auto at = time_of(health->gpu().changed_at());
    if (at && (!first || *at < *first)) first = at;
  }
  return first ? age(now - *first) : std::string();
}

std::vector<std::string> cells_of(const HealthRow& row, base::Instant now, bool has_marks) {
  const v1::GpuHealth& health = *row.gpus.front();
  const v1::Gpu& gpu = health.gpu();
  const bool is_one = row.gpus.size() == 1;
  std::vector<std::int64_t> indices;
  for (const v1::GpuHealth* each : row.gpus) indices.push_back(each->gpu().index());
  return {marked_name(gpu.node(), gpu.emulated() && has_marks),
          ranges_of(indices),
          gpu.type(),
          state_name(gpu),
          since_of(row, now),
          is_one ? utilization_of(gpu) : "",
          is_one ? temperature_of(gpu) : "",
          is_one ? power_of(gpu) : "",
          is_one ? if_known(health.has_ecc_uncorrected(), health.ecc_uncorrected()) : "",
          with_local_times(row.trouble)};
}

}  // namespace

Table health_table(const GpuHealthList& healths, base::Instant now,
                   const HealthTableOptions& options) {
  Table table({{"NODE", Align::kLeft, 12},
               {"GPU", Align::kRight},
               {"TYPE", Align::kLeft, 8, 4},
               {.title = "STATE", .is_state = true},
               {"FOR", Align::kRight, std::nullopt, 2},
               {"UTIL", Align::kRight, std::nullopt, 6},
               {"TEMP", Align::kRight, std::nullopt, 3},
               {"POWER", Align::kRight, std::nullopt, 7},
               {"ECC", Align::kRight, std::nullopt, 5},
               {.title = "WRONG", .cut_to = 28, .wraps = true}});
  const std::vector<HealthRow> rows = health_rows(healths, now);
  for (const bool unwell : {true, false}) {
    if (!unwell && !options.with_well) continue;
    for (const HealthRow& row : rows) {
      if (row.trouble.empty() != unwell) table.add(cells_of(row, now, options.has_marks));
    }
  }
  return table;
}

namespace {

using KeyValue = std::pair<std::string_view, std::string>;

std::string key_value_lines(std::span<const KeyValue> lines) {
  std::string page;
  for (const auto& [key, value] : lines) {
    if (!value.empty()) page += fmt::format("{:<17}{}\n", fmt::format("{}:", key), harmless(value));
  }
  return page;
}

std::string head_of(const v1::GpuHealth& health, base::Instant now, const JobLabels& names) {
  const v1::Gpu& gpu = health.gpu();
  const KeyValue lines[] = {
      {"GPU", fmt::format("{} of {}", gpu.index(), marked_name(gpu.node(), gpu.emulated()))},
      {"Model", gpu.model()},
      {"Type", gpu.type()},
      {"UUID", gpu.uuid()},
      {"State", state_name(gpu)},
      {"Reason", with_local_times(gpu.reason())},
      {"Changed", changed_text(gpu, now)},
      {"Jobs", jobs_of(gpu, names)},
      {"Free", gpu.parts().empty() ? "" : share_text(gpu.free_share()) + " of it"},
  };
  return key_value_lines(lines);
}

std::string readings_of(const v1::GpuHealth& health, base::Instant now) {
  const v1::Gpu& gpu = health.gpu();
  const std::string limit =
      if_known(health.has_power_limit_watts(), health.power_limit_watts(), "{:.0f} W");
  const std::string power = power_of(gpu);
  const KeyValue lines[] = {
      {"Read", time_text(health.read_at(), now)},
      {"No readings", health.no_readings()},
      {"Does not answer", health.problem()},
      {"Utilization", utilization_of(gpu)},
      {"Memory", memory_of(gpu)},
      {"Memory reserved",
       size_of(health.has_memory_reserved_bytes(), health.memory_reserved_bytes())},
      {"Memory bus", if_known(health.has_memory_utilization_percent(),
                              health.memory_utilization_percent(), "{:.0f} %")},
      {"Temperature", temperature_of(gpu)},
      {"Power", power.empty() || limit.empty() ? power : power + " of " + limit},
      {"Clock SM", if_known(health.has_clock_sm_mhz(), health.clock_sm_mhz(), "{} MHz")},
      {"Clock memory",
       if_known(health.has_clock_memory_mhz(), health.clock_memory_mhz(), "{} MHz")},
      {"Clocks held by", joined(texts_of(health.throttle_reasons()), ", ")},
      {"ECC errors",
       pair_of(if_known(health.has_ecc_corrected(), health.ecc_corrected(), "{} corrected"),
               if_known(health.has_ecc_uncorrected(), health.ecc_uncorrected(), "{} uncorrected"))},
      {"Remapped rows",
       pair_of(if_known(health.has_remapped_rows_corrected(), health.remapped_rows_corrected(),
                        "{} after corrected errors"),
               if_known(health.has_remapped_rows_uncorrected(), health.remapped_rows_uncorrected(),
                        "{} after uncorrected ones"))},
      {"Remap pending", yes_or_no(health.has_remap_pending(), health.remap_pending())},
      {"Remap failed", yes_or_no(health.has_remap_failed(), health.remap_failed())},
      {"Driver wants", health.recovery_action()},
      {"PCIe", pcie_of(health)},
      {"NVLinks active", if_known(health.has_nvlinks_active(), health.nvlinks_active())},
      {"NUMA node", if_known(gpu.has_numa_node(), gpu.numa_node())},
  };
  return key_value_lines(lines);
}

}  // namespace

std::string health_page(const v1::GpuHealth& health, const PageStyle& style,
                        const JobLabels& names) {
  const std::string readings = readings_of(health, style.now);
  return head_of(health, style.now, names) + health_story(health, style, names) +
         (readings.empty() ? "" : "\n" + readings) + processes_of(health, names) +
         xids_of(health, style.now);
}

}  // namespace gpu_platform::cli
