#include "shims/batch_options.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace gpu_platform::shims {

namespace {

constexpr auto kNothing = Take::kNothing;
constexpr auto kValue = Take::kValue;
constexpr auto kMayHaveValue = Take::kMayHaveValue;
constexpr auto kHonoured = Rule::kHonoured;
constexpr auto kAccepted = Rule::kAccepted;
constexpr auto kIgnored = Rule::kIgnored;
constexpr auto kRefused = Rule::kRefused;

constexpr std::string_view kNoMail = "no mail is sent; 'gpu-platform jobs wait' waits for the end";
constexpr std::string_view kOneNode = "a job of sbatch or srun has one node";
constexpr std::string_view kBinding = "the platform binds a job to the CPUs next to its GPUs";
constexpr std::string_view kNoNodes =
    "name the nodes with --nodelist, or ask for a type with --gres=gpu:TYPE:N";

// What sbatch and srun both know. The variables are sbatch's; srun reads none.
constexpr Option kShared[] = {
    {"job-name", 'J', kValue, kHonoured, "", "SBATCH_JOB_NAME"},
    {"output", 'o', kValue, kHonoured, "", "SBATCH_OUTPUT"},
    {"error", 'e', kValue, kHonoured, "", "SBATCH_ERROR"},
    {"input", 'i', kValue, kHonoured, "", "SBATCH_INPUT"},
    {"open-mode", 0, kValue, kHonoured, "", "SBATCH_OPEN_MODE"},
    {"time", 't', kValue, kHonoured, "", "SBATCH_TIMELIMIT"},
    {"signal", 0, kValue, kHonoured, "", "SBATCH_SIGNAL"},
    {"nodes", 'N', kValue, kHonoured, "", ""},
    {"ntasks", 'n', kValue, kHonoured, "", ""},
    {"ntasks-per-node", 0, kValue, kHonoured, "", ""},
    {"ntasks-per-gpu", 0, kValue, kHonoured, "", ""},
    {"cpus-per-task", 'c', kValue, kHonoured, "", ""},
    {"cpus-per-gpu", 0, kValue, kHonoured, "", "SBATCH_CPUS_PER_GPU"},
    {"mem", 0, kValue, kHonoured, "", "SBATCH_MEM_PER_NODE"},
    {"mem-per-cpu", 0, kValue, kHonoured, "", "SBATCH_MEM_PER_CPU"},
    {"mem-per-gpu", 0, kValue, kHonoured, "", "SBATCH_MEM_PER_GPU"},
    {"gres", 0, kValue, kHonoured, "", "SBATCH_GRES"},
    {"gpus", 'G', kValue, kHonoured, "", "SBATCH_GPUS"},
    {"gpus-per-node", 0, kValue, kHonoured, "", "SBATCH_GPUS_PER_NODE"},
    {"gpus-per-task", 0, kValue, kHonoured, "", "SBATCH_GPUS_PER_TASK"},
    {"gpus-per-socket", 0, kValue, kRefused,
     "ask for --gpus; they are placed by NVLink and NUMA anyway", ""},
    {"constraint", 'C', kValue, kHonoured, "", "SBATCH_CONSTRAINT"},
    {"partition", 'p', kValue, kHonoured, "", "SBATCH_PARTITION"},
    {"account", 'A', kValue, kHonoured, "", "SBATCH_ACCOUNT"},
    {"qos", 'q', kValue, kHonoured, "", "SBATCH_QOS"},
    {"nice", 0, kMayHaveValue, kHonoured, "", ""},
    {"comment", 0, kValue, kHonoured, "", ""},
    {"chdir", 'D', kValue, kHonoured, "", ""},
    {"export", 0, kValue, kHonoured, "", "SBATCH_EXPORT"},
    {"quiet", 'Q', kNothing, kHonoured, "", ""},
    {"help", 'h', kNothing, kHonoured, "", ""},
    {"version", 'V', kNothing, kHonoured, "", ""},
    {"verbose", 'v', kNothing, kAccepted, "", ""},
    {"no-kill", 'k', kMayHaveValue, kAccepted, "", ""},
    {"oversubscribe", 's', kNothing, kIgnored, "the job shares its node, not its CPUs", ""},
    {"mail-type", 0, kValue, kIgnored, kNoMail, ""},
    {"mail-user", 0, kValue, kIgnored, kNoMail, ""},
    {"reservation", 0, kValue, kHonoured, "", "SBATCH_RESERVATION"},
    {"gpu-bind", 0, kValue, kIgnored, "every task sees all GPUs of the job", "SBATCH_GPU_BIND"},
    {"gpu-freq", 0, kValue, kIgnored, "the administrator sets the clocks", "SBATCH_GPU_FREQ"},
    {"gres-flags", 0, kValue, kIgnored, kBinding, ""},
    {"distribution", 'm', kValue, kIgnored, kOneNode, "SBATCH_DISTRIBUTION"},
    {"cpu-bind", 0, kValue, kIgnored, kBinding, ""},
    {"mem-bind", 0, kValue, kIgnored, kBinding, "SBATCH_MEM_BIND"},
    {"hint", 0, kValue, kIgnored, kBinding, "SBATCH_HINT"},
    {"threads-per-core", 0, kValue, kIgnored, kBinding, "SBATCH_THREADS_PER_CORE"},
    {"ntasks-per-core", 0, kValue, kIgnored, kBinding, ""},
    {"ntasks-per-socket", 0, kValue, kIgnored, kBinding, ""},
    {"sockets-per-node", 0, kValue, kIgnored, kBinding, ""},
    {"cores-per-socket", 0, kValue, kIgnored, kBinding, ""},
    {"core-spec", 'S', kValue, kIgnored, kBinding, "SBATCH_CORE_SPEC"},
    {"mincpus", 0, kValue, kIgnored, "set the number of CPUs with -c", ""},
    {"tmp", 0, kValue, kIgnored, "local disk is not counted", ""},
    {"switches", 0, kValue, kIgnored, kOneNode, "SBATCH_REQ_SWITCH"},
    {"network", 0, kValue, kIgnored, kOneNode, "SBATCH_NETWORK"},
    {"contiguous", 0, kNothing, kIgnored, kOneNode, ""},
    {"use-min-nodes", 0, kNothing, kIgnored, kOneNode, ""},
    {"overcommit", 'O', kNothing, kIgnored, "a job has its CPUs alone", "SBATCH_OVERCOMMIT"},
    {"profile", 0, kValue, kIgnored, "nothing is sampled into files", "SBATCH_PROFILE"},
    {"acctg-freq", 0, kValue, kIgnored, "nothing is sampled into files", "SBATCH_ACCTG_FREQ"},
    {"licenses", 'L', kValue, kIgnored, "licenses are not counted", ""},
    {"propagate", 0, kMayHaveValue, kIgnored, "the platform sets the limits", ""},
    {"priority", 0, kValue, kIgnored, "use --qos=high, medium or low", ""},
    {"wckey", 0, kValue, kIgnored, "there are no wckeys", "SBATCH_WCKEY"},
    {"clusters", 'M', kValue, kIgnored, "there is one cluster", "SBATCH_CLUSTERS"},
    {"spread-job", 0, kNothing, kIgnored, kOneNode, "SBATCH_SPREAD_JOB"},
    {"deadline", 0, kValue, kHonoured, "", ""},
    {"delay-boot", 0, kValue, kIgnored, "nodes are not booted for jobs", ""},
    {"power", 0, kValue, kIgnored, "the administrator sets power limits", ""},
    {"uid", 0, kValue, kRefused, "submit as that user", ""},
    {"gid", 0, kValue, kRefused, "submit as a user of that group", ""},
    {"dependency", 'd', kValue, kHonoured, "", ""},
    {"begin", 'b', kValue, kHonoured, "", ""},
    {"hold", 'H', kNothing, kHonoured, "", ""},
    {"test-only", 0, kNothing, kRefused,
     "nothing was submitted; 'gpu-platform check' says whether and when such a job would start",
     "SBATCH_TEST_ONLY"},
    {"nodefile", 'F', kValue, kRefused, kNoNodes, ""},
    {"exclude", 'x', kValue, kHonoured, "", "SBATCH_EXCLUDE"},
    {"cluster-constraint", 0, kValue, kRefused, "there is one cluster", ""},
    {"bb", 0, kValue, kRefused, "there are no burst buffers", ""},
    {"bbf", 0, kValue, kRefused, "there are no burst buffers", ""},
    {"container", 0, kValue, kRefused, "the platform starts no containers: start one in the job",
     "SBATCH_CONTAINER"},
};

constexpr Option kSbatchAlone[] = {
    {"array", 'a', kValue, kHonoured, "", "SBATCH_ARRAY_INX"},
    {"wrap", 0, kValue, kHonoured, "", ""},
    {"wait", 'W', kNothing, kHonoured, "", "SBATCH_WAIT"},
    {"parsable", 0, kNothing, kHonoured, "", ""},
    {"no-requeue", 0, kNothing, kHonoured, "", "SBATCH_NO_REQUEUE"},
    {"requeue", 0, kNothing, kAccepted, "", "SBATCH_REQUEUE"},
    {"wait-all-nodes", 0, kValue, kAccepted, "", ""},
    {"no-bell", 0, kNothing, kAccepted, "", ""},
    {"exclusive", 0, kMayHaveValue, kIgnored,
     "GPUs are the job's own; CPUs and memory beyond what it asks for are "
     "not kept for it",
     "SBATCH_EXCLUSIVE"},
    {"get-user-env", 0, kMayHaveValue, kIgnored,
     "the environment is that of the submission; a login shell (#!/bin/bash -l) "
     "reads the user's",
     "SBATCH_GET_USER_ENV"},
    {"kill-on-invalid-dep", 0, kValue, kIgnored,
     "a job whose dependency can never be met is always cancelled", ""},
    {"nodelist", 'w', kValue, kHonoured, "", ""},
};

constexpr Option kSrunAlone[] = {
    {"unbuffered", 'u', kNothing, kAccepted, "", ""},
    {"kill-on-bad-exit", 'K', kMayHaveValue, kIgnored, "a task that fails does not end the others",
     ""},
    {"exact", 0, kNothing, kAccepted, "", ""},
    {"overlap", 0, kNothing, kAccepted, "", ""},
    {"exclusive", 0, kMayHaveValue, kAccepted, "", ""},
    {"nodelist", 'w', kValue, kAccepted, "", ""},
    {"wait", 'W', kValue, kAccepted, "", ""},
    {"label", 'l', kNothing, kIgnored, "lines have no task numbers", ""},
    {"mpi", 0, kValue, kIgnored, "srun has no MPI launcher: use mpirun", ""},
    {"pty", 0, kMayHaveValue, kRefused,
     "use 'gpu-platform run --pty', or 'gpu-platform jobs exec -t' in a job", ""},
    {"multi-prog", 0, kNothing, kRefused, "tasks of one step run one program", ""},
    {"jobid", 0, kValue, kRefused, "a step cannot be put into another job", ""},
};

template <std::size_t N, std::size_t M>
constexpr std::array<Option, N + M> joined(const Option (&first)[N], const Option (&second)[M]) {
  std::array<Option, N + M> all{};
  std::ranges::copy(second, std::ranges::copy(first, all.begin()).out);
  return all;
}

constexpr auto kSbatch = joined(kShared, kSbatchAlone);
constexpr auto kSrun = joined(kShared, kSrunAlone);

constexpr std::string_view kDirective = "#SBATCH";

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// One word at a time out of a directive.
class DirectiveReader {
 public:
  explicit DirectiveReader(std::string_view line) : rest_(line) {}

  base::Result<std::vector<std::string>> read() {
    while (skip_blanks()) {
      std::string word;
      while (!rest_.empty() && !is_blank(rest_.front())) TRY(take_part(word));
      words_.push_back(std::move(word));
    }
    return std::move(words_);
  }

 private:
  // False at the end or at a comment.
  bool skip_blanks() {
    while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
    return !rest_.empty() && rest_.front() != '#';
  }

  base::Status take_part(std::string& word) {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == '\\' && !rest_.empty()) {
      word.push_back(rest_.front());
      rest_.remove_prefix(1);
    } else if (c == '"' || c == '\'') {
      const std::size_t end = rest_.find(c);
      if (end == std::string_view::npos) return base::invalid({}, "a quote is not closed");
      word += rest_.substr(0, end);
      rest_.remove_prefix(end + 1);
    } else {
      word.push_back(c);
    }
    return {};
  }

  std::string_view rest_;
  std::vector<std::string> words_;
};

}  // namespace

std::span<const Option> sbatch_options() {
  return kSbatch;
}

std::span<const Option> srun_options() {
  return kSrun;
}

base::Result<std::vector<std::string>> directive_words(std::string_view line) {
  return DirectiveReader(line).read();
}

base::Status read_directives(std::string_view script, Settings& settings,
                             std::vector<std::string>& warnings) {
  for (std::size_t number = 1; !script.empty(); ++number) {
    const std::size_t end = script.find('\n');
    const std::string_view line = script.substr(0, end);
    script.remove_prefix(end == std::string_view::npos ? script.size() : end + 1);
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) continue;
    if (line[first] != '#') break;
    const bool is_directive = line.starts_with(kDirective) && line.size() > kDirective.size() &&
                              is_blank(line[kDirective.size()]);
    if (!is_directive) continue;
    const std::string where = fmt::format("line {}", number);
    auto words = directive_words(line.substr(kDirective.size()));
    if (!words) return base::invalid(where, words.error().message);
    if (!words->empty() && (words->front() == "hetjob" || words->front() == "packjob")) {
      return base::invalid(where,
                           "jobs of several parts are not supported: submit one job for each");
    }
    const Reading reading{kSbatch, Unknown::kWarn, Order::kMixed, where};
    TRY_ASSIGN(const auto rest, read_options(reading, *words, settings, warnings));
    if (!rest.empty())
      warnings.push_back(fmt::format("{}: '{}' is no option and is ignored", where, rest.front()));
  }
  return {};
}

base::Status check_script(std::string_view script) {
  if (!script.starts_with("#!")) {
    return base::invalid({},
                         "this does not look like a batch script: the first line must start with "
                         "#! and the path of an "
                         "interpreter, as in #!/bin/sh");
  }
  if (script.find('\0') != std::string_view::npos) {
    return base::invalid({}, "this does not look like a batch script: it contains a NUL byte");
  }
  if (script.substr(0, script.find('\n')).ends_with('\r')) {
    return base::invalid({}, "the script has DOS line ends (\\r\\n); dos2unix makes them right");
  }
  if (interpreter_of(script).empty())
    return base::invalid({}, "the script's first line names no interpreter");
  return {};
}

std::vector<std::string> interpreter_of(std::string_view script) {
  if (!script.starts_with("#!")) return {};
  std::string_view line = script.substr(2, script.find('\n') - 2);
  const auto trim = [](std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return std::string_view();
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
  };
  line = trim(line);
  if (line.empty()) return {};
  const std::size_t blank = line.find_first_of(" \t");
  std::vector<std::string> words{std::string(line.substr(0, blank))};
  if (blank != std::string_view::npos) words.emplace_back(trim(line.substr(blank)));
  return words;
}

}  // namespace gpu_platform::shims
