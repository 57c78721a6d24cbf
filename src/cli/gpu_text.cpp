#include "cli/gpu_text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

// Clocks held down for these are part of the work.
bool is_harmless_throttle(std::string_view reason) {
  constexpr std::array kHarmless = {"CLOCK_SETTING", "POWER_CAP", "SYNC_BOOST", "DISPLAY_CLOCK"};
  return std::ranges::find(kHarmless, reason) != kHarmless.end();
}

std::string latest_xid(const Json& health, base::Instant now) {
  const Json& xids = list_at(health, "xids");
  if (xids.empty()) return {};
  std::string text = "XID " + text_at(xids.front(), "xid");
  if (const auto at = time_at(xids.front(), "at")) {
    text += fmt::format(" {} ago", age(now - *at));
  }
  return xids.size() > 1 ? fmt::format("{} and {} before", text, xids.size() - 1) : text;
}

std::string with_unit(const Json& object, std::string_view key, std::string_view unit) {
  const std::string text = text_at(object, key);
  return text.empty() ? text : fmt::format("{} {}", text, unit);
}

std::string size_at(const Json& object, std::string_view key) {
  const auto bytes = integer_at(object, key);
  return bytes ? readable_size(*bytes) : std::string();
}

std::string yes_or_no(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_boolean()) return {};
  return found->get<bool>() ? "yes" : "no";
}

// "corrected 3, uncorrected 0"; what is not known is left out.
std::string pair_at(const Json& object, std::string_view a_key, std::string_view a,
                    std::string_view b_key, std::string_view b) {
  std::vector<std::string> parts;
  if (const std::string text = text_at(object, a_key); !text.empty()) {
    parts.push_back(fmt::format("{} {}", text, a));
  }
  if (const std::string text = text_at(object, b_key); !text.empty()) {
    parts.push_back(fmt::format("{} {}", text, b));
  }
  return joined(parts, ", ");
}

std::string pcie_of(const Json& health) {
  std::vector<std::string> parts;
  const std::string generation = text_at(health, "pcie_generation");
  const std::string width = text_at(health, "pcie_width");
  if (!generation.empty()) parts.push_back("generation " + generation);
  if (!width.empty()) parts.push_back("x" + width);
  const auto sent = integer_at(health, "pcie_sent_bytes_per_second");
  const auto received = integer_at(health, "pcie_received_bytes_per_second");
  if (sent) parts.push_back(readable_size(*sent) + "/s sent");
  if (received) parts.push_back(readable_size(*received) + "/s received");
  if (const std::string replays = text_at(health, "pcie_replays"); !replays.empty()) {
    parts.push_back(counted(count_at(health, "pcie_replays"), "replay"));
  }
  return joined(parts, ", ");
}

std::string time_text(const Json& object, std::string_view key, base::Instant now) {
  const auto at = time_at(object, key);
  return at ? fmt::format("{} ({} ago)", local_time(*at), age(now - *at)) : std::string();
}

std::string changed_text(const Json& gpu, base::Instant now) {
  const std::string by = text_at(gpu, "changed_by");
  const std::string at = time_text(gpu, "changed_at", now);
  return by.empty() ? at : fmt::format("by {}{}{}", by, at.empty() ? "" : ", ", at);
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

std::string processes_of(const Json& health) {
  const Json& processes = list_at(health, "processes");
  if (processes.empty()) return {};
  Table table({{"PID", Align::kRight}, {"USER"}, {"COMMAND"}, {"MEMORY", Align::kRight}, {"JOB"}});
  for (const Json& process : processes) {
    const std::string job = text_at(process, "job");
    table.add({text_at(process, "pid"), text_at(process, "user"), text_at(process, "command"),
               size_at(process, "memory_bytes"), job.empty() ? "none" : job});
  }
  return "\nProcesses:\n" + indented(table.render(0));
}

std::string xids_of(const Json& health, base::Instant now) {
  const Json& xids = list_at(health, "xids");
  if (xids.empty()) return {};
  Table table({{"XID", Align::kRight}, {"WHEN"}});
  for (const Json& xid : xids) table.add({text_at(xid, "xid"), time_text(xid, "at", now)});
  return "\nErrors reported by the driver:\n" + indented(table.render(0));
}

std::string jobs_of(const Json& gpu) {
  return joined(texts_at(gpu, "jobs"), ",");
}

}  // namespace

std::string marked_name(const Json& object, std::string_view key) {
  return text_at(object, key) + (flag_at(object, "emulated") ? " (emulated)" : "");
}

std::string memory_of(const Json& object, std::string_view used, std::string_view total) {
  const auto have = integer_at(object, total);
  const auto taken = integer_at(object, used);
  if (!have) return {};
  return taken ? readable_size(*taken) + "/" + readable_size(*have) : readable_size(*have);
}

std::string reading(const Json& object, std::string_view key, std::string_view unit) {
  const auto value = number_at(object, key);
  return value ? fmt::format("{:.0f}{}", *value, unit) : std::string();
}

bool is_in_service(const Json& gpu) {
  constexpr std::array kWorking = {"AVAILABLE", "ALLOCATED", "IN_USE", "CLEANING"};
  return std::ranges::find(kWorking, text_at(gpu, "state")) != kWorking.end();
}

std::size_t unnamed_unmanaged_processes(const Json& gpu) {
  const bool is_named = text_at(gpu, "reason").find("unmanaged processes") != std::string::npos;
  return is_named ? 0 : list_at(gpu, "unmanaged_processes").size();
}

Table gpu_table(const Json& gpus) {
  Table table({{"NODE", Align::kLeft, 12},
               {"GPU", Align::kRight},
               {"TYPE", Align::kLeft, 8, 2},
               {"STATE"},
               {"JOBS", Align::kLeft, 6},
               {"MEMORY", Align::kRight},
               {"UTIL", Align::kRight},
               {"TEMP", Align::kRight, std::nullopt, 3},
               {"POWER", Align::kRight, std::nullopt, 4},
               {"UUID", Align::kLeft, 12, 5},
               {"REASON", Align::kLeft, 8}});
  for (const Json& gpu : gpus) {
    table.add({marked_name(gpu, "node"), text_at(gpu, "index"), text_at(gpu, "type"),
               text_at(gpu, "state"), jobs_of(gpu),
               memory_of(gpu, "memory_used_bytes", "memory_total_bytes"),
               reading(gpu, "utilization_percent", " %"), reading(gpu, "temperature_c", " °C"),
               reading(gpu, "power_watts", " W"), text_at(gpu, "uuid"), text_at(gpu, "reason")});
  }
  return table;
}

Table changed_table(const Json& gpus) {
  Table table({{"NODE", Align::kLeft, 12},
               {"GPU", Align::kRight},
               {"TYPE", Align::kLeft, 8, 1},
               {"STATE"},
               {"JOBS", Align::kLeft, 6},
               {"REASON", Align::kLeft, 8}});
  for (const Json& gpu : gpus) {
    table.add({marked_name(gpu, "node"), text_at(gpu, "index"), text_at(gpu, "type"),
               text_at(gpu, "state"), jobs_of(gpu), text_at(gpu, "reason")});
  }
  return table;
}

std::vector<std::string> troubles_of(const Json& health, base::Instant now) {
  std::vector<std::string> troubles;
  const Json& gpu = object_at(health, "gpu");
  const std::string reason = text_at(gpu, "reason");
  if (!reason.empty()) troubles.push_back(reason);
  if (reason.empty() && !is_in_service(gpu)) troubles.push_back(text_at(gpu, "state"));
  const std::string problem = text_at(health, "problem");
  if (!problem.empty() && reason.find(problem) == std::string::npos) troubles.push_back(problem);
  if (const auto errors = count_at(health, "ecc_uncorrected"); errors > 0) {
    troubles.push_back(counted(errors, "uncorrected ECC error"));
  }
  if (flag_at(health, "remap_failed")) troubles.emplace_back("a row could not be remapped");
  if (flag_at(health, "remap_pending")) {
    troubles.emplace_back("rows wait for a reset to be remapped");
  }
  const std::string action = text_at(health, "recovery_action");
  if (!action.empty() && action != "NONE" && action != "UNKNOWN")
    troubles.push_back("the driver wants " + action);
  if (const std::string xid = latest_xid(health, now); !xid.empty()) troubles.push_back(xid);
  for (const std::string& held : texts_at(health, "throttle_reasons")) {
    if (!is_harmless_throttle(held)) troubles.push_back("clocks are held down: " + held);
  }
  if (const std::size_t count = unnamed_unmanaged_processes(gpu); count > 0) {
    troubles.push_back(fmt::format("{} process{} of no job", count, count == 1 ? "" : "es"));
  }
  return troubles;
}

Table health_table(const Json& healths, base::Instant now) {
  Table table({{"NODE", Align::kLeft, 12},
               {"GPU", Align::kRight},
               {"TYPE", Align::kLeft, 8, 2},
               {"STATE"},
               {"UTIL", Align::kRight, std::nullopt, 3},
               {"TEMP", Align::kRight},
               {"POWER", Align::kRight, std::nullopt, 4},
               {"ECC", Align::kRight, std::nullopt, 5},
               {"WRONG", Align::kLeft, 16}});
  for (const bool unwell : {true, false}) {
    for (const Json& health : healths) {
      const Json& gpu = object_at(health, "gpu");
      const std::vector<std::string> troubles = troubles_of(health, now);
      if (troubles.empty() == unwell) continue;
      table.add({marked_name(gpu, "node"), text_at(gpu, "index"), text_at(gpu, "type"),
                 text_at(gpu, "state"), reading(gpu, "utilization_percent", " %"),
                 reading(gpu, "temperature_c", " °C"), reading(gpu, "power_watts", " W"),
                 text_at(health, "ecc_uncorrected"), joined(troubles, "; ")});
    }
  }
  return table;
}

std::string health_page(const Json& health, base::Instant now) {
  const Json& gpu = object_at(health, "gpu");
  const std::string limit = reading(health, "power_limit_watts", " W");
  const std::string power = reading(gpu, "power_watts", " W");
  const std::pair<std::string_view, std::string> lines[] = {
      {"GPU", fmt::format("{} of {}", text_at(gpu, "index"), marked_name(gpu, "node"))},
      {"Model", text_at(gpu, "model")},
      {"Type", text_at(gpu, "type")},
      {"UUID", text_at(gpu, "uuid")},
      {"State", text_at(gpu, "state")},
      {"Reason", text_at(gpu, "reason")},
      {"Changed", changed_text(gpu, now)},
      {"Jobs", jobs_of(gpu)},
      {"Read", time_text(health, "read_at", now)},
      {"Does not answer", text_at(health, "problem")},
      {"Utilization", reading(gpu, "utilization_percent", " %")},
      {"Memory", memory_of(gpu, "memory_used_bytes", "memory_total_bytes")},
      {"Memory reserved", size_at(health, "memory_reserved_bytes")},
      {"Memory bus", reading(health, "memory_utilization_percent", " %")},
      {"Temperature", reading(gpu, "temperature_c", " °C")},
      {"Power", power.empty() || limit.empty() ? power : power + " of " + limit},
      {"Clock SM", with_unit(health, "clock_sm_mhz", "MHz")},
      {"Clock memory", with_unit(health, "clock_memory_mhz", "MHz")},
      {"Clocks held by", joined(texts_at(health, "throttle_reasons"), ", ")},
      {"ECC errors",
       pair_at(health, "ecc_corrected", "corrected", "ecc_uncorrected", "uncorrected")},
      {"Remapped rows", pair_at(health, "remapped_rows_corrected", "after corrected errors",
                                "remapped_rows_uncorrected", "after uncorrected ones")},
      {"Remap pending", yes_or_no(health, "remap_pending")},
      {"Remap failed", yes_or_no(health, "remap_failed")},
      {"Driver wants", text_at(health, "recovery_action")},
      {"PCIe", pcie_of(health)},
      {"NVLinks active", text_at(health, "nvlinks_active")},
      {"NUMA node", text_at(gpu, "numa_node")},
  };
  std::string page;
  for (const auto& [key, value] : lines) {
    if (!value.empty()) page += fmt::format("{:<17}{}\n", fmt::format("{}:", key), harmless(value));
  }
  return page + processes_of(health) + xids_of(health, now);
}

}  // namespace gpu_platform::cli
