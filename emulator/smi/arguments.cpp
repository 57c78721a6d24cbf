#include "smi/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "smi/report.h"

namespace gpu_emulator {

namespace {

using gpu_platform::base::invalid;
using gpu_platform::base::Result;
using gpu_platform::base::Status;

enum class Option : std::uint8_t {
  kList,
  kQuery,
  kXml,
  kIds,
  kFile,
  kDisplay,
  kSeconds,
  kMilliseconds,
  kQueryGpus,
  kQueryProcesses,
  kFormat,
  kHelp,
  kHelpQueryGpus,
  kHelpQueryProcesses,
  kVersion,
  kReset,
  kMigMode,
};

struct OptionName {
  std::string_view brief;  // empty: it has none
  std::string_view full;
  Option option;
  bool takes_value;
  std::string_view help;
};

constexpr OptionName kOptions[] = {
    {"-L", "--list-gpus", Option::kList, false, "List the GPUs with their UUIDs."},
    {"-q", "--query", Option::kQuery, false, "Report all that is known of each GPU."},
    {"-a", "", Option::kQuery, false, "The same as -q."},
    {"-x", "--xml-format", Option::kXml, false, "With -q: as an XML document."},
    {"-i", "--id", Option::kIds, true,
     "Only these GPUs: indices, UUIDs, serial numbers or PCI bus ids, separated by commas."},
    {"-f", "--filename", Option::kFile, true, "Write to a file in place of standard output."},
    {"-d", "--display", Option::kDisplay, true, "With -q: only these sections."},
    {"-l", "--loop", Option::kSeconds, true, "Repeat after so many seconds until Ctrl-C."},
    {"-lms", "--loop-ms", Option::kMilliseconds, true, "Repeat after so many milliseconds."},
    {"", "--query-gpu", Option::kQueryGpus, true, "Fields of each GPU: see --help-query-gpu."},
    {"", "--query-compute-apps", Option::kQueryProcesses, true,
     "Fields of each process that computes: see --help-query-compute-apps."},
    {"", "--format", Option::kFormat, true,
     "Of a query: csv, and after commas noheader and nounits."},
    {"-r", "--gpu-reset", Option::kReset, false, "Reset the GPUs of an emulated board."},
    {"-mig", "--multi-instance-gpu", Option::kMigMode, true, "Switch MIG on (1) or off (0)."},
    {"-h", "--help", Option::kHelp, false, "Print this help."},
    {"", "--help-query-gpu", Option::kHelpQueryGpus, false, "List the fields of --query-gpu."},
    {"", "--help-query-compute-apps", Option::kHelpQueryProcesses, false,
     "List the fields of --query-compute-apps."},
    {"", "--version", Option::kVersion, false, "Print the versions of the driver."},
};

Result<std::uint64_t> interval_of(std::string_view text, std::uint64_t factor) {
  constexpr std::uint64_t kMost = 100'000'000;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0 || value > kMost) {
    return invalid("-l", fmt::format("'{}' is not an interval.", text));
  }
  return value * factor;
}

Status set(Option option, const std::string& value, SmiArguments& out) {
  switch (option) {
    case Option::kList:
      out.task = SmiTask::kList;
      break;
    case Option::kQuery:
      out.task = SmiTask::kReport;
      break;
    case Option::kXml:
      out.is_xml = true;
      break;
    case Option::kIds:
      out.ids = value;
      break;
    case Option::kFile:
      out.file = value;
      break;
    case Option::kDisplay:
      out.displays = value;
      break;
    case Option::kSeconds: {
      TRY_ASSIGN(out.interval_ms, interval_of(value, 1000));
      break;
    }
    case Option::kMilliseconds: {
      TRY_ASSIGN(out.interval_ms, interval_of(value, 1));
      break;
    }
    case Option::kQueryGpus:
      out.task = SmiTask::kQueryGpus;
      out.fields = value;
      break;
    case Option::kQueryProcesses:
      out.task = SmiTask::kQueryProcesses;
      out.fields = value;
      break;
    case Option::kFormat:
      out.format = value;
      break;
    case Option::kHelp:
      out.task = SmiTask::kHelp;
      break;
    case Option::kHelpQueryGpus:
      out.task = SmiTask::kHelpQueryGpus;
      break;
    case Option::kHelpQueryProcesses:
      out.task = SmiTask::kHelpQueryProcesses;
      break;
    case Option::kReset:
      out.task = SmiTask::kReset;
      break;
    case Option::kMigMode: {
      const bool is_on = value == "1" || value == "ENABLED";
      if (!is_on && value != "0" && value != "DISABLED") {
        return invalid("-mig", fmt::format("Invalid MIG mode '{}': it is 0 or 1.", value));
      }
      out.task = SmiTask::kMigMode;
      out.is_mig_on = is_on;
      break;
    }
    case Option::kVersion:
      out.task = SmiTask::kVersions;
      break;
  }
  return {};
}

std::unexpected<gpu_platform::base::Error> not_recognized(std::string_view word) {
  return invalid("",
                 fmt::format("Invalid combination of input arguments: \"{}\" is not recognized. "
                             "Please run 'nvidia-smi -h' for help.",
                             word));
}

const OptionName* option_of(std::string_view word) {
  const auto* found = std::ranges::find_if(kOptions, [&](const OptionName& each) {
    return !word.empty() && (word == each.brief || word == each.full);
  });
  return found == std::end(kOptions) ? nullptr : found;
}

// "topo -m", with -i before or after.
Result<SmiArguments> read_topology(std::span<const std::string> words) {
  SmiArguments out;
  out.task = SmiTask::kHelp;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-i" && i + 1 < words.size()) {
      out.ids = words[++i];
    } else if (word == "-m" || word == "--matrix") {
      out.task = SmiTask::kTopology;
    } else if (word != "-h" && word != "--help") {
      return not_recognized(word);
    }
  }
  return out;
}

struct MigWord {
  std::string_view brief;
  std::string_view full;
  std::optional<SmiTask> task;
  std::string SmiArguments::* value = nullptr;  // that the word after it goes to
  bool is_value_needed = true;
};

const MigWord kMigWords[] = {
    {"-h", "--help", SmiTask::kHelp},
    {"-lgip", "--list-gpu-instance-profiles", SmiTask::kMigProfiles},
    {"-lgipp", "--list-gpu-instance-possible-placements", SmiTask::kMigPlacements},
    {"-lgi", "--list-gpu-instances", SmiTask::kMigInstances},
    {"-lcip", "--list-compute-instance-profiles", SmiTask::kMigComputeProfiles},
    {"-lci", "--list-compute-instances", SmiTask::kMigComputeInstances},
    {"-cgi", "--create-gpu-instance", SmiTask::kMigCreate, &SmiArguments::profiles},
    {"-cci", "--create-compute-instance", SmiTask::kMigCreateCompute, &SmiArguments::profiles,
     false},
    {"-dgi", "--destroy-gpu-instance", SmiTask::kMigDestroy},
    {"-dci", "--destroy-compute-instance", SmiTask::kMigDestroyCompute},
    {"-i", "--id", std::nullopt, &SmiArguments::ids},
    {"-gi", "--gpu-instance-id", std::nullopt, &SmiArguments::gpu_instances},
    {"-ci", "--compute-instance-id", std::nullopt, &SmiArguments::compute_instances},
};

// "mig -cgi 9,3g.40gb -C -i 0": words in any order.
Result<SmiArguments> read_mig(std::span<const std::string> words) {
  SmiArguments out;
  out.task = SmiTask::kHelp;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-C" || word == "--default-compute-instance") {
      out.has_compute = true;
      continue;
    }
    const auto* known = std::ranges::find_if(
        kMigWords, [&](const MigWord& each) { return word == each.brief || word == each.full; });
    if (known == std::end(kMigWords)) return not_recognized(word);
    if (known->task) out.task = *known->task;
    if (known->value == nullptr) continue;
    const bool has_value = i + 1 < words.size() && !words[i + 1].starts_with("-");
    if (has_value) {
      out.*known->value = words[++i];
    } else if (known->is_value_needed) {
      return invalid("", fmt::format("Missing value for option {}. Please run 'nvidia-smi mig -h' "
                                     "for help.",
                                     word));
    }
  }
  if (out.has_compute && out.task != SmiTask::kMigCreate) return not_recognized("-C");
  return out;
}

Result<SmiArguments> checked(SmiArguments out) {
  const bool is_query = out.task == SmiTask::kQueryGpus || out.task == SmiTask::kQueryProcesses;
  if (is_query && out.format.empty()) {
    return invalid("--format",
                   "\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.");
  }
  const bool is_report = out.task == SmiTask::kReport;
  if (!is_report && (out.is_xml || !out.displays.empty())) {
    return not_recognized(out.is_xml ? "-x" : "-d");
  }
  if (!is_query && !out.format.empty()) return not_recognized("--format");
  if (!out.displays.empty() && !read_displays(out.displays)) {
    return invalid("-d", fmt::format("Invalid display type \"{}\": the types are {}.", out.displays,
                                     names_of_displays()));
  }
  return out;
}

}  // namespace

Result<SmiArguments> read_arguments(std::span<const std::string> words) {
  if (!words.empty() && words.front() == "topo") return read_topology(words);
  if (!words.empty() && words.front() == "mig") return read_mig(words);
  SmiArguments out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const OptionName* option = option_of(std::string_view(word).substr(0, equals));
    if (option == nullptr) return not_recognized(word);
    const bool has_value = equals != std::string::npos;
    if (has_value && !option->takes_value) return not_recognized(word);
    std::string value = has_value ? word.substr(equals + 1) : "";
    if (option->takes_value && !has_value) {
      if (i + 1 == words.size()) {
        return invalid(
            "",
            fmt::format("Missing value for option {}. Please run 'nvidia-smi -h' for help.", word));
      }
      value = words[++i];
    }
    TRY(set(option->option, value, out));
  }
  return checked(std::move(out));
}

std::string help_text() {
  std::string text =
      "nvidia-smi of gpu-platform: reads NVML as NVIDIA's program of this name does.\n"
      "\n"
      "    nvidia-smi [OPTION]...\n"
      "    nvidia-smi topo -m\n"
      "    nvidia-smi mig -lgip | -lgipp | -lgi | -lcip | -lci [-i ID]\n"
      "    nvidia-smi mig -cgi PROFILE[:START],... [-C] [-i ID]\n"
      "    nvidia-smi mig -cci [PROFILE,...] [-gi ID] [-i ID]\n"
      "    nvidia-smi mig -dci [-ci ID] [-gi ID] [-i ID]\n"
      "    nvidia-smi mig -dgi [-gi ID] [-i ID]\n"
      "\n";
  for (const OptionName& each : kOptions) {
    std::string names(each.brief);
    if (!each.brief.empty() && !each.full.empty()) names += ", ";
    names += each.full;
    if (each.takes_value) names += "=";
    text += fmt::format("    {:<28} {}\n", names, each.help);
  }
  return text + "\nSections of -d: " + names_of_displays() + "\n";
}

}  // namespace gpu_emulator
