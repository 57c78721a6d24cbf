#include "cli/words/completion.h"
#include "base/utc.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/client_names.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"
#include "cli/words/known_options.h"
#include "client/profiles.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/reservations.pb.h"
#include "gpu_platform/v1/teams.pb.h"
#include "gpu_platform/v1/tokens.pb.h"
#include "model/states.h"

namespace gpu_platform::cli {

namespace {

using Candidates = std::vector<Candidate>;

// The value of an option that was given on the line: "--server X" or "--server=X".
std::optional<std::string> given(std::span<const std::string> words, const std::string& name) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == name) return words[i + 1];
    if (words[i].starts_with(name + "=")) return words[i].substr(name.size() + 1);
  }
  return std::nullopt;
}

// ---- names that the daemon knows

class KnownNames {
 public:
  KnownNames(std::span<const std::string> words, const Invocation& invocation) {
    const auto own = given(words, "--server");
    const ProcessEnvironment& around = invocation.console.process_environment();
    if (auto servers = client::servers_to_try({.server = own ? own : invocation.server}, around)) {
      servers_ = std::move(*servers);
    }
    if (auto profiles = client::read_profiles(around)) profiles_ = std::move(*profiles);
  }

  Candidates jobs() const {
    return of("/v1/jobs?limit=500", &v1::ListJobsResponse::jobs, &v1::Job::id,
              [](const v1::Job& job) {
                return fmt::format("{} {}", job.spec().name(), state_name(job));
              });
  }
  Candidates profiles() const {
    Candidates found;
    for (const client::Profile& profile : profiles_.all) {
      found.push_back({profile.name, profile.server.text()});
    }
    found.push_back({std::string(client::kLocalProfile), "this machine's own daemon"});
    return found;
  }
  Candidates nodes() const {
    return of("/v1/status", &v1::Status::nodes, &v1::Node::name,
              [](const v1::Node& node) { return state_name(node); });
  }
  Candidates reservations() const {
    return of("/v1/reservations", &v1::ListReservationsResponse::reservations,
              &v1::Reservation::name,
              [](const v1::Reservation& reservation) { return time_text(reservation.begin()); });
  }
  Candidates teams() const {
    return of("/v1/teams", &v1::ListTeamsResponse::teams, &v1::Team::name,
              [](const v1::Team& team) { return team.parent(); });
  }
  Candidates tokens() const {
    return of("/v1/tokens", &v1::ListTokensResponse::tokens, &v1::Token::name,
              [](const v1::Token& token) { return time_text(token.expires_at()); });
  }

 private:
  static std::string time_text(const google::protobuf::Timestamp& field) {
    const auto at = time_of(field);
    return at ? base::utc(*at, base::Fraction::kMilliseconds) : std::string();
  }

  template <class Answer, class Entry, class Help>
  Candidates of(const std::string& target,
                const google::protobuf::RepeatedPtrField<Entry>& (Answer::*list)() const,
                const std::string& (Entry::*name)() const, const Help& help) const {
    Candidates found;
    const auto answer = Client(servers_).ask<Answer>(target, "it");
    if (!answer) return found;
    for (const Entry& entry : ((*answer).*list)()) {
      found.push_back({harmless((entry.*name)()), harmless(help(entry))});
    }
    return found;
  }

  std::vector<http::Server> servers_;
  client::Profiles profiles_;
};

// "wide|json|name" are three words; "CLASS|0-9" is a description.
Candidates alternatives(std::string_view value) {
  Candidates words;
  for (std::string& word : parts_between(value, '|')) {
    const bool is_word = std::ranges::all_of(word, [](char c) { return c >= 'a' && c <= 'z'; });
    if (is_word && !word.empty() && value.find('|') != std::string_view::npos) {
      words.push_back({std::move(word), {}});
    }
  }
  return words;
}

Candidates states() {
  Candidates names;
  for (std::size_t i = 0; i < model::kJobStates; ++i) {
    names.push_back({std::string(to_string(static_cast<model::JobState>(i))), {}});
  }
  return names;
}

Candidates values_of(std::string_view option, std::string_view value, const KnownNames& names) {
  if (option == "--server") return names.profiles();
  if (option == "--reservation") return names.reservations();
  if (option == "--team" || option == "--parent") return names.teams();
  if (option == "--priority") {
    return {{"critical", {}}, {"high", {}}, {"medium", {}}, {"low", {}}};
  }
  if (value.starts_with("STATE")) return states();
  if (value.starts_with("NODE") || option == "--node") return names.nodes();
  if (value.starts_with("ID")) return names.jobs();
  return alternatives(value);
}

Candidates words_of(const Command& command, const std::string& name, const KnownNames& names) {
  if (name.starts_with("ID")) return names.jobs();
  if (name == "NAME" && command.text.name.starts_with("reservations")) return names.reservations();
  if (name.starts_with("PROFILE")) return names.profiles();
  if (name == "TOKEN") return names.tokens();
  if (name.starts_with("TEAM") || name == "[TEAM]") return names.teams();
  return alternatives(name);
}

// The options whose names begin so, the long name of each.
Candidates option_names(const KnownOptions& options, std::string_view prefix) {
  Candidates names;
  for (const KnownOption& option : options.all) {
    for (const std::string& name : option.names) {
      if (name.starts_with("--") && name.starts_with(prefix)) {
        names.push_back({name, option.help});
        break;
      }
    }
  }
  return names;
}

// "a,b,c" is completed in its last part.
Candidates matching(Candidates all, const std::string& word) {
  const std::size_t comma = word.rfind(',');
  const std::string before = comma == std::string::npos ? "" : word.substr(0, comma + 1);
  const std::string part = word.substr(before.size());
  std::erase_if(all, [&](const Candidate& c) { return !c.word.starts_with(part); });
  for (Candidate& candidate : all) candidate.word.insert(0, before);
  return all;
}

// Returns whether the word belongs to the job's own command.
bool is_command_line(const Command& command, std::span<const std::string> before) {
  return command.text.synopsis.find("COMMAND") != std::string_view::npos &&
         std::ranges::find(before, "--") != before.end();
}

Candidates of_command(const Command& command, std::span<const std::string> words,
                      const Invocation& invocation) {
  const std::string& word = words.back();
  const std::span<const std::string> before = words.first(words.size() - 1);
  if (is_command_line(command, before)) return {};
  const KnownOptions options = options_of(command, invocation.console.process_environment());
  const KnownNames names(words, invocation);
  const std::size_t equals = word.find('=');
  if (word.starts_with("--") && equals != std::string::npos) {
    const KnownOption* option = options.find(word.substr(0, equals));
    if (option == nullptr) return {};
    Candidates values =
        matching(values_of(word.substr(0, equals), option->value, names), word.substr(equals + 1));
    for (Candidate& value : values) value.word.insert(0, word.substr(0, equals + 1));
    return values;
  }
  const KnownOption* former = before.empty() ? nullptr : options.find(before.back());
  if (former != nullptr && !former->value.empty() && !former->value.starts_with('[')) {
    return matching(values_of(before.back(), former->value, names), word);
  }
  if (word.starts_with("-")) return option_names(options, word);
  return matching(words_of(command, options.words, names), word);
}

// bash takes "=" for a word: "--state = RUN" stands for "--state RUN".
std::vector<std::string> without_equals(std::span<const std::string> words) {
  std::vector<std::string> kept(words.begin(), words.end());
  if (!kept.empty() && kept.back() == "=") kept.emplace_back();
  std::erase(kept, "=");
  return kept;
}

Candidates candidates_for(const CommandIndex& index, const Invocation& invocation) {
  const std::vector<std::string> all = without_equals(invocation.words);
  const std::span<const std::string> words = all;
  if (words.empty()) return index.first_words;
  if (words.size() == 1) return matching(index.first_words, words.front());
  std::size_t used = 0;
  const Command* command = index.find(words.first(words.size() - 1), used);
  Candidates found;
  if (command != nullptr) found = of_command(*command, words.subspan(used), invocation);
  if (words.size() == 2) {
    // Also below a command that takes words of its own.
    for (Candidate& below : matching(index.second_words(words.front()), words.back())) {
      found.push_back(std::move(below));
    }
  }
  return found;
}

}  // namespace

int run_complete(const CommandIndex& index, const Invocation& invocation) {
  Console& console = invocation.console;
  for (const Candidate& candidate : candidates_for(index, invocation)) {
    console.out(fmt::format("{}\t{}\n", candidate.word, candidate.help));
  }
  return console.out_failed() ? kFailure : kOk;
}

namespace {

// The words up to the cursor go to the program, which prints a candidate and its help in a line.
constexpr std::string_view kBash = R"(# gpu-platform completion for bash: put this into a file of
# /usr/share/bash-completion/completions, or load it with: source <(gpu-platform completion bash)
_gpu_platform() {
  local words=("${COMP_WORDS[@]:1:COMP_CWORD}") IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" complete -- "${words[@]}" 2>/dev/null | cut -f 1))
  if (( ${#COMPREPLY[@]} == 0 )); then compopt -o default; fi
}
complete -F _gpu_platform gpu-platform
)";

constexpr std::string_view kZsh = R"(#compdef gpu-platform
# gpu-platform completion for zsh: put this into a file _gpu-platform of a folder in $fpath, or load
# it with: source <(gpu-platform completion zsh)
_gpu-platform() {
  local -a candidates lines
  lines=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  local line
  for line in "${lines[@]}"; do
    [[ -n $line ]] && candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( ${#candidates} )); then _describe 'gpu-platform' candidates; else _files; fi
}
if [[ ${funcstack[1]} == _gpu-platform ]]; then _gpu-platform "$@"; else compdef _gpu-platform gpu-platform; fi
)";

constexpr std::string_view kFish = R"fish(# gpu-platform completion for fish: put this into
# ~/.config/fish/completions/gpu-platform.fish
function __gpu_platform
    set -l words (commandline -opc) (commandline -ct)
    gpu-platform complete -- $words[2..] 2>/dev/null
end
complete -c gpu-platform -f -n 'test -n "$(__gpu_platform)"' -a '(__gpu_platform)'
)fish";

}  // namespace

int run_completion(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> shells;
  Arguments arguments(text);
  arguments.words("bash|zsh|fish", shells, 1, 1, "the shell");
  if (const auto done = arguments.parse(invocation.words, console)) return *done;
  for (const auto& [name, script] :
       {std::pair{"bash", kBash}, std::pair{"zsh", kZsh}, std::pair{"fish", kFish}}) {
    if (shells.front() != name) continue;
    console.out(script);
    return console.out_failed() ? kFailure : kOk;
  }
  return usage_error(console, fmt::format("'{}' is not one of bash, zsh, fish", shells.front()),
                     text.name);
}

}  // namespace gpu_platform::cli
