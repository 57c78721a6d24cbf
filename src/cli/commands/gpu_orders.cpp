#include "cli/commands/gpu_orders.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "api/convert/text_forms.h"
#include "base/letters.h"
#include "base/parse.h"
#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/text/gpu_text.h"
#include "cli/text/job_names.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"
#include "cli/words/gpu_choice.h"
#include "client/request_text.h"

namespace gpu_platform::cli {

namespace {

constexpr base::Duration kBetweenLooks = base::seconds(2);

struct GpuOrderOptions {
  GpuChoice which;
  std::optional<std::string> reason;
  std::optional<std::string> timeout;
  std::optional<base::Duration> at_most;
  bool force = false;
  bool when_empty = false;
  bool deep = false;
  bool yes = false;
  bool wait = false;
  Output output;
};

// Each GPU or node that is meant; what is wrong with the words.
base::Result<std::vector<GpuChoice>> choices_of(const GpuChoice& which) {
  std::vector<GpuChoice> choices;
  for (const std::string& word : which.words) choices.push_back(choice_of_word(word));
  const int options = which.given() - int{!which.words.empty()};
  if (options + int{!choices.empty()} != 1) {
    return base::invalid("",
                         "give the GPUs or nodes as words, or one of --gpu-id, --gpu and "
                         "--node");
  }
  if (choices.empty()) choices.push_back(which);
  for (const GpuChoice& choice : choices) {
    if (const auto mistake = choice.mistake()) return base::invalid("", *mistake);
  }
  return choices;
}

std::string name_of(const GpuChoice& choice) {
  if (choice.node) return "node " + *choice.node;
  return "GPU " + choice.gpu.value_or(choice.gpu_id.value_or(""));
}

// One GPU is asked for by its name, so there is no question.
bool needs_yes(const std::vector<GpuChoice>& choices) {
  return choices.size() > 1 || choices.front().node.has_value();
}

bool is_confirmed(Console& console, const std::vector<GpuChoice>& choices,
                  const GpuOrderWords& words) {
  console.err(fmt::format("These are to be {}:\n", words.done));
  for (const GpuChoice& choice : choices) {
    console.err(
        fmt::format("  {}{}\n", choice.node ? "all GPUs of " : "", harmless(name_of(choice))));
  }
  console.err("Go on? [y/N] ");
  std::string answer;
  char c = 0;
  while (::read(console.process_environment().in_fd, &c, 1) == 1 && c != '\n') answer.push_back(c);
  const std::string said = base::to_upper(answer);
  return said == "Y" || said == "YES";
}

std::string body_of(const GpuChoice& choice, const GpuOrderOptions& options) {
  v1::ChangeGpusRequest request;
  if (choice.gpu_id) request.set_gpu_id(*choice.gpu_id);
  if (choice.gpu) request.set_gpu(*choice.gpu);
  if (choice.node) request.set_node(*choice.node);
  if (options.reason) request.set_reason(*options.reason);
  request.set_force(options.force);
  request.set_when_empty(options.when_empty || options.wait);
  request.set_deep(options.deep);
  return client::request_text(request);
}

void tell_ordered(Console& console, Client& client, const v1::ChangeGpusResponse& answer,
                  const GpuChoice& choice, const GpuOrderWords& words) {
  if (answer.gpus().empty()) {
    return console.note(answer.changed() ? fmt::format("{} has no GPUs", name_of(choice))
                                         : fmt::format("nothing changed: {} is being {} already",
                                                       name_of(choice), words.done));
  }
  std::set<std::string> jobs;
  for (const v1::Gpu& gpu : answer.gpus()) jobs.insert(gpu.jobs().begin(), gpu.jobs().end());
  console.out(changed_table(answer.gpus(), job_names(client, jobs))
                  .render({.width = console.process_environment().width,
                           .has_colors = client::wants_color(console.process_environment())}));
  if (all_emulated(answer.gpus())) console.note("these GPUs are emulated");
  if (!jobs.empty()) {
    console.note(fmt::format("{} still {} them; the {} follows when {} ended",
                             counted(jobs.size(), "job"), jobs.size() == 1 ? "holds" : "hold",
                             words.noun, jobs.size() == 1 ? "it has" : "they have"));
  }
}

bool is_under_way(const v1::GpuHealth& health) {
  const auto is_of_reset = [](const v1::GpuTaint& taint) { return taint.source() == "RESET"; };
  return health.gpu().state() == v1::GPU_STATE_RESETTING ||
         std::ranges::any_of(health.taints(), is_of_reset);
}

std::string gpu_place(const v1::Gpu& gpu) {
  return fmt::format("{}:{}", gpu.node(), gpu.index());
}

// Why what was asked for last was not done; null: it was. The rules of its machine did not allow
// it, or it could not begin.
const v1::Evidence* refusal_of(const v1::GpuHealth& health) {
  constexpr std::uint32_t kRefused = 2;
  constexpr std::uint32_t kUntried = 3;
  const auto is_trial = [](const v1::Evidence& piece) {
    return piece.kind() == "RESET" || piece.kind() == "CHECK";
  };
  const v1::Evidence* latest = nullptr;
  for (const v1::Evidence& piece : health.evidence()) {
    if (is_trial(piece)) latest = &piece;
  }
  if (latest == nullptr) return nullptr;
  return latest->code() == kRefused || latest->code() == kUntried ? latest : nullptr;
}

// Waits until each of the GPUs has been checked. Returns kOk if all are back in service.
int await_ends(Console& console, Client& client, std::vector<std::string> uuids,
               std::optional<base::Duration> at_most, const GpuOrderWords& words) {
  const ProcessEnvironment& around = console.process_environment();
  const base::Instant began = around.steady();
  BackOff back_off(console, client::kRetryTimeout);
  int result = kOk;
  while (!uuids.empty()) {
    const auto health = client.ask<v1::GpuHealth>(
        "/v1/gpus/health?gpu_id=" + base::percent_encoded(uuids.back()), "the health of a GPU");
    if (!health && (!health.error().is_passing() || !back_off.wait(health.error(), -1))) {
      return report(console, health.error(), false);
    }
    if (health && !is_under_way(*health)) {
      back_off.reset();
      const v1::Gpu& gpu = health->gpu();
      const v1::Evidence* const refusal = refusal_of(*health);
      const bool is_back = is_in_service(gpu) && refusal == nullptr;
      console.note(refusal != nullptr
                       ? fmt::format("GPU {} was not {}: {}", gpu_place(gpu),
                                     refusal->kind() == "RESET" ? "reset" : "checked",
                                     refusal->text())
                   : is_back ? fmt::format("GPU {} is back in service", gpu_place(gpu))
                             : fmt::format("GPU {} is {}: {}", gpu_place(gpu), state_name(gpu),
                                           short_reason(gpu)));
      if (!is_back) result = kFailure;
      uuids.pop_back();
      continue;
    }
    if (at_most && around.steady() - began >= *at_most) {
      console.note(fmt::format(
          "{} not {} yet; the order stays",
          uuids.size() == 1 ? "1 GPU is" : fmt::format("{} GPUs are", uuids.size()), words.done));
      return kTimedOut;
    }
    around.pause(kBetweenLooks, -1);
  }
  return result;
}

// All are tried; the exit code is that of the first that failed.
int send_orders(Console& console, Client& client, const std::vector<GpuChoice>& choices,
                const GpuOrderOptions& options, const GpuOrderWords& words) {
  int result = kOk;
  std::vector<std::string> uuids;
  for (const GpuChoice& choice : choices) {
    const auto body = client.post(std::string(words.target), body_of(choice, options));
    if (!body) {
      const int code = report(console, body.error(), options.output.wants_documents());
      if (result == kOk) result = code;
      if (code == kNoDaemon) return result;
      continue;
    }
    const auto answer = client::message_of<v1::ChangeGpusResponse>(*body);
    if (options.output.is_document() || !answer) {
      print_next_document(console, options.output, *body);
    } else {
      tell_ordered(console, client, *answer, choice, words);
    }
    if (!answer) continue;
    for (const v1::Gpu& gpu : answer->gpus()) uuids.push_back(gpu.uuid());
  }
  if (console.out_failed()) return kFailure;
  if (result != kOk || !options.wait) return result;
  std::ranges::reverse(uuids);
  return await_ends(console, client, std::move(uuids), options.at_most, words);
}

}  // namespace

int run_gpu_order(const CommandText& text, Invocation& invocation, const GpuOrderWords& words) {
  Console& console = invocation.console;
  GpuOrderOptions options;
  Arguments arguments(text);
  options.which.add_to(arguments, SIZE_MAX);
  arguments.option("--reason", options.reason, "TEXT", "reason that is shown with the GPU")
      .flag("--when-empty", options.when_empty,
            "wait until no job holds it; it gets no new ones until then")
      .flag("--force", options.force, "stop the jobs that hold it; they are queued again")
      .flag("--yes", options.yes, "do not ask; a node or several GPUs are asked about")
      .flag("--wait", options.wait, std::string(words.to_wait))
      .option("--timeout", options.timeout, "DURATION",
              "with --wait: give up after this (exit code 124); the order stays")
      .output(options.output, {"gpus", "uuid"});
  if (words.may_be_deep) {
    arguments.flag("--deep", options.deep, "check for minutes, not for seconds");
  }
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (options.timeout) {
    const auto duration = base::parse_duration(*options.timeout);
    if (!duration) return usage_error(console, "--timeout: " + duration.error().message, text.name);
    options.at_most = *duration;
  }
  if (options.reason && !api::is_valid_utf8(*options.reason)) {
    return usage_error(console, "--reason: the text is not valid UTF-8", text.name);
  }
  const auto choices = choices_of(options.which);
  if (!choices) return usage_error(console, choices.error().message, text.name);
  if (needs_yes(*choices) && !options.yes) {
    if (::isatty(console.process_environment().in_fd) != 1) {
      return usage_error(console,
                         "standard input is not a terminal, so there can be no question: use --yes",
                         text.name);
    }
    if (!is_confirmed(console, *choices, words)) {
      console.note("nothing was done");
      return kFailure;
    }
  }
  return send_orders(console, *client, *choices, options, words);
}

}  // namespace gpu_platform::cli
