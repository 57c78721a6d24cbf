#include "cli/submission/sbatch_line.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "cli/words/input.h"

namespace gpu_platform::cli {

namespace {

enum class Meaning : std::uint8_t {
  kSame,      // as `ours` with the same value
  kFlag,      // `ours`, without a value
  kTime,      // of Slurm's forms
  kMemory,    // 0 is the node's share
  kNodes,     // a range begins with the fewest
  kGpus,      // "2", "a100:2"
  kGres,      // "gpu:2", "gpu:a100:2"
  kOneTask,   // only 1 means anything here
  kMailType,  // events, which add up
  kMailUser,
  kIgnored,  // with a warning
  kSilent,   // nothing follows from it here
};

struct SlurmOption {
  std::string_view name;
  char letter;
  bool has_value;
  Meaning meaning;
  std::string_view ours;  // or why it is ignored
};

// clang-format off
constexpr SlurmOption kOptions[] = {
    {"job-name", 'J', true, Meaning::kSame, "--name"},
    {"output", 'o', true, Meaning::kSame, "--output"},
    {"error", 'e', true, Meaning::kSame, "--error"},
    {"open-mode", 0, true, Meaning::kSame, "--open-mode"},
    {"time", 't', true, Meaning::kTime, "--time"},
    {"signal", 0, true, Meaning::kSame, "--signal"},
    {"nodes", 'N', true, Meaning::kNodes, "--nodes"},
    {"ntasks", 'n', true, Meaning::kSame, "--ntasks"},
    {"ntasks-per-node", 0, true, Meaning::kOneTask, ""},
    {"cpus-per-task", 'c', true, Meaning::kSame, "--cpus"},
    {"mem", 0, true, Meaning::kMemory, "--memory"},
    {"gpus", 'G', true, Meaning::kGpus, "--gpus"},
    {"gpus-per-node", 0, true, Meaning::kGpus, "--gpus-per-node"},
    {"gres", 0, true, Meaning::kGres, "--gpus-per-node"},
    {"nodelist", 'w', true, Meaning::kSame, "--nodelist"},
    {"exclude", 'x', true, Meaning::kSame, "--exclude"},
    {"account", 'A', true, Meaning::kSame, "--team"},
    {"array", 'a', true, Meaning::kSame, "--array"},
    {"dependency", 'd', true, Meaning::kSame, "--dependency"},
    {"begin", 'b', true, Meaning::kSame, "--begin"},
    {"deadline", 0, true, Meaning::kSame, "--deadline"},
    {"reservation", 0, true, Meaning::kSame, "--reservation"},
    {"comment", 0, true, Meaning::kSame, "--comment"},
    {"chdir", 'D', true, Meaning::kSame, "--workdir"},
    {"hold", 'H', false, Meaning::kFlag, "--hold"},
    {"partition", 'p', true, Meaning::kIgnored, "there are no partitions here; --gpu-type and --nodelist choose nodes"},
    {"qos", 'q', true, Meaning::kIgnored, "there is no QOS here; --priority sets the class"},
    {"mail-type", 0, true, Meaning::kMailType, "--notify"},
    {"mail-user", 0, true, Meaning::kMailUser, "--notify-to"},
    {"export", 0, true, Meaning::kIgnored, "the job has your environment; --env adds variables"},
    {"requeue", 0, false, Meaning::kSilent, ""},
    {"verbose", 'v', false, Meaning::kSilent, ""},
    {"quiet", 'Q', false, Meaning::kSilent, ""},
};
// clang-format on

std::string shown_name(const SlurmOption& option) {
  return fmt::format("--{}", option.name);
}

base::Error no_counterpart(const std::string& word) {
  std::vector<std::string> names;
  for (const SlurmOption& option : kOptions) names.push_back(shown_name(option));
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return {base::ErrorCode::kInvalidArgument,
          fmt::format("'submit' has no counterpart of this option{}: submit the script with "
                      "'sbatch', or write a #GPU line",
                      base::did_you_mean(word, candidates)),
          word};
}

// Slurm's "MM:SS" is the one form that the command line does not have.
std::string slurm_time_text(const std::string& text) {
  if (text.find('-') != std::string::npos || std::ranges::count(text, ':') != 1) return text;
  const std::size_t colon = text.find(':');
  const auto minutes = base::parse_count(text.substr(0, colon), 0, 1'000'000);
  const auto seconds = base::parse_count(text.substr(colon + 1), 0, 59);
  if (!minutes || !seconds) return text;
  return fmt::format("{}s", *minutes * 60 + *seconds);
}

bool is_unlimited(const std::string& text) {
  const std::string upper = base::to_upper(text);
  return upper == "UNLIMITED" || upper == "INFINITE" || text == "0";
}

// "a100:2" as a type and a number.
void put_gpus_of(std::string_view option, const std::string& text,
                 std::vector<std::string>& words) {
  const std::size_t colon = text.find(':');
  if (colon != std::string::npos) words.insert(words.end(), {"--gpu-type", text.substr(0, colon)});
  words.insert(words.end(), {std::string(option), text.substr(colon + 1)});
}

// "mps:50" is a percentage of one GPU.
base::Status put_mps(const std::string& item, std::vector<std::string>& words) {
  const std::string count = item.size() > 4 ? item.substr(4) : "1";
  const auto percent = base::parse_count(count, 1, 100);
  if (!percent)
    return base::invalid("--gres", fmt::format("{}: {}", item, percent.error().message));
  if (*percent == 100) {
    words.insert(words.end(), {"--gpus", "1"});
  } else {
    words.insert(words.end(), {"--gpus", fmt::format("0.{:02}", *percent), "--share", "mps"});
  }
  return {};
}

// "gpu", "gpu:2", "gpu:a100", "gpu:a100:2", "mps:50", and others with commas between.
base::Status put_gres(const SlurmOption& option, std::string list, std::vector<std::string>& words,
                      std::vector<std::string>& warnings) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    std::string item = list.substr(begin, end - begin);
    begin = end + 1;
    if (item.starts_with("gres/")) item.erase(0, 5);
    if (item == "none") continue;
    if (item == "mps" || item.starts_with("mps:")) {
      TRY(put_mps(item, words));
      continue;
    }
    if (item == "shard" || item.starts_with("shard:")) {
      return base::invalid("--gres", fmt::format("how much of a GPU {} is, the site says: submit "
                                                 "the script with 'sbatch', or write #GPU --gpus "
                                                 "0.5",
                                                 item));
    }
    if (item != "gpu" && !item.starts_with("gpu:")) {
      warnings.push_back(fmt::format("--gres {} is ignored: it is not a GPU", item));
      continue;
    }
    std::string rest = item.size() > 4 ? item.substr(4) : "1";
    const bool ends_in_number =
        base::parse_count(rest.substr(rest.rfind(':') + 1), 0, 65535).has_value();
    if (!ends_in_number) rest += ":1";
    put_gpus_of(option.ours, rest, words);
  }
  return {};
}

// As Slurm, a job that runs into its time limit has failed.
constexpr std::pair<std::string_view, std::string_view> kMailEvents[] = {
    {"BEGIN", "start"}, {"END", "end"}, {"FAIL", "fail"}, {"TIME_LIMIT", "fail"},
    {"ALL", "start"},   {"ALL", "end"}, {"ALL", "fail"},
};

// The same events that `sbatch` knows (shims/submission/mail_options.h).
void put_mail_events(const std::string& list, SbatchMail& mail,
                     std::vector<std::string>& warnings) {
  mail.has_type = true;
  for (const std::string& word : words_of_lists({list})) {
    const std::string type = base::to_upper(word);
    bool is_known = type == "NONE";
    for (const auto& [name, event] : kMailEvents) {
      if (type != name) continue;
      is_known = true;
      mail.events.emplace(event);
    }
    if (!is_known) {
      warnings.push_back(fmt::format(
          "--mail-type: '{}' is ignored: the platform tells BEGIN, END, FAIL and TIME_LIMIT",
          word));
    }
  }
}

base::Status translate(const SlurmOption& option, const std::string& value, SbatchMail& mail,
                       std::vector<std::string>& words, std::vector<std::string>& warnings) {
  const std::string ours(option.ours);
  const auto warn = [&](std::string_view why) {
    warnings.push_back(fmt::format("{} is ignored: {}", shown_name(option), why));
  };
  switch (option.meaning) {
    case Meaning::kSame:
      words.insert(words.end(), {ours, value});
      return {};
    case Meaning::kFlag:
      words.push_back(ours);
      return {};
    case Meaning::kTime:
      if (is_unlimited(value)) {
        warn("the site's longest time applies");
      } else {
        words.insert(words.end(), {ours, slurm_time_text(value)});
      }
      return {};
    case Meaning::kMemory:
      if (value == "0") {
        warn("the job has the node's share of memory");
      } else {
        words.insert(words.end(), {ours, value});
      }
      return {};
    case Meaning::kNodes: {
      const std::string nodes = value.substr(0, value.find('-'));
      words.insert(words.end(), {ours, nodes});
      // As with sbatch, the script runs once and starts the others itself.
      if (nodes != "1") words.emplace_back("--first-node-only");
      return {};
    }
    case Meaning::kGpus:
      put_gpus_of(option.ours, value, words);
      return {};
    case Meaning::kGres:
      return put_gres(option, value, words, warnings);
    case Meaning::kOneTask:
      if (value == "1") return {};
      return base::invalid(
          shown_name(option),
          fmt::format("'{}' tasks need 'srun': submit the script with 'sbatch'", value));
    case Meaning::kMailType:
      put_mail_events(value, mail, warnings);
      return {};
    case Meaning::kMailUser:
      mail.to = value;
      return {};
    case Meaning::kIgnored:
      warn(option.ours);
      return {};
    case Meaning::kSilent:
      return {};
  }
  return {};
}

const SlurmOption* option_named(std::string_view word) {
  const bool is_long = word.starts_with("--");
  const std::string_view name = is_long ? word.substr(2, word.find('=') - 2) : word.substr(1, 1);
  const auto* const found = std::ranges::find_if(kOptions, [&](const SlurmOption& option) {
    return is_long ? option.name == name : option.letter != 0 && option.letter == name.front();
  });
  return found == std::end(kOptions) ? nullptr : found;
}

}  // namespace

base::Result<std::vector<std::string>> words_of_sbatch_line(const std::vector<std::string>& words,
                                                            SbatchMail& mail,
                                                            std::vector<std::string>& warnings) {
  std::vector<std::string> ours;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || !word.starts_with('-')) {
      return base::invalid(word, "is not an option; a line has only options");
    }
    const SlurmOption* const option = option_named(word);
    if (option == nullptr) return std::unexpected(no_counterpart(word.substr(0, word.find('='))));
    std::string value;
    const bool is_long = word.starts_with("--");
    const std::size_t equals = word.find('=');
    if (is_long && equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (!is_long && word.size() > 2) {
      value = word.substr(word[2] == '=' ? 3 : 2);
    } else if (option->has_value) {
      if (++i == words.size()) return base::invalid(word, "the value is missing");
      value = words[i];
    }
    if (option->has_value && value.empty()) return base::invalid(word, "the value is empty");
    TRY(translate(*option, value, mail, ours, warnings));
  }
  return ours;
}

}  // namespace gpu_platform::cli
