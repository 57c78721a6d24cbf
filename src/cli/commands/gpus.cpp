#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/convert/gpu_selector.h"
#include "api/convert/text_forms.h"
#include "base/parse.h"
#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/jobs/await_empty.h"
#include "cli/screen/repeat.h"
#include "cli/text/gpu_text.h"
#include "cli/text/job_names.h"
#include "cli/text/json_view.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"
#include "cli/words/input.h"

// The commands about single GPUs: their health, and taking them out of service.

namespace gpu_platform::cli {

namespace {

// Which GPUs: at most one of these is given.
struct Which {
  std::optional<std::string> gpu_id, gpu, node;
  std::vector<std::string> words;  // one of these without its option, as kubectl takes a node

  void add_to(Arguments& arguments) {
    arguments
        .words("[NODE | NODE:INDEX | UUID]", words, 0, 1,
               "all of a node, or one of its GPUs, without the option")
        .option("--gpu-id", gpu_id, "UUID", "the GPU with this UUID")
        .option("--gpu", gpu, "NODE:INDEX", "the GPU with this index on that node")
        .option("--node", node, "NAME", "all of a node");
  }
  int given() const {
    return int{gpu_id.has_value()} + int{gpu.has_value()} + int{node.has_value()} +
           int{!words.empty()};
  }
  // Gives the word to the option that it stands in for. A word beside an option is one too many.
  void take_word() {
    if (words.empty() || gpu_id || gpu || node) return;
    const std::string& word = words.front();
    const bool is_uuid = word.starts_with("GPU-") || word.starts_with("MIG-");
    const bool has_index = word.find(':') != std::string::npos;
    (is_uuid ? gpu_id : has_index ? gpu : node) = std::exchange(words, {}).front();
  }
  // Returns what is wrong with the options, before the daemon is asked.
  std::optional<std::string> mistake() const {
    for (const auto& [name, value] :
         {std::pair{"--gpu-id", &gpu_id}, {"--gpu", &gpu}, {"--node", &node}}) {
      if (value->has_value() && (*value)->empty()) return fmt::format("{}: is empty", name);
    }
    if (!gpu.has_value()) return std::nullopt;
    const auto place = api::parse_gpu_place(*gpu);
    if (place) return std::nullopt;
    return fmt::format("--gpu: '{}' is not NODE:INDEX, as in dgx-h100-1:3", *gpu);
  }
};

struct Change {
  std::string_view path;   // of the call
  std::string_view doing;  // what it does with them, "drained"
  bool can_force = false;
  bool can_wait = false;
  bool can_end = false;  // by itself
};

// What is asked for beside the GPUs.
struct Order {
  std::optional<std::string> reason;
  std::optional<std::string> until;  // RFC 3339
  bool force = false;
};

std::string gpu_request_body(const Which& which, const Order& order) {
  Json body;
  if (which.gpu_id) body["gpu_id"] = *which.gpu_id;
  if (which.gpu) body["gpu"] = *which.gpu;
  if (which.node) body["node"] = *which.node;
  if (order.reason) body["reason"] = *order.reason;
  if (order.until) body["until"] = *order.until;
  if (order.force) body["force"] = true;
  return json_text(body);
}

// The ids of the jobs that hold these GPUs.
std::set<std::string> jobs_on(const ClusterGpus& gpus) {
  std::set<std::string> jobs;
  for (const v1::Gpu& gpu : gpus) jobs.insert(gpu.jobs().begin(), gpu.jobs().end());
  return jobs;
}

int tell_changed(Console& console, Client& client, const v1::ChangeGpusResponse& answer,
                 const Which& which, const Change& change) {
  if (!answer.changed()) {
    console.note("nothing changed: it is already in this state");
    return kOk;
  }
  if (answer.gpus().empty()) {
    console.note(
        fmt::format("node {} is {}; it has no GPUs", which.node.value_or(""), change.doing));
    return kOk;
  }
  console.out(changed_table(answer.gpus(), job_names(client, jobs_on(answer.gpus())))
                  .render({.width = console.process_environment().width,
                           .has_colors = client::wants_color(console.process_environment())}));
  if (all_emulated(answer.gpus())) console.note("these GPUs are emulated");
  return console.out_failed() ? kFailure : kOk;
}

int run_change(const CommandText& text, Invocation& invocation, const Change& change) {
  Console& console = invocation.console;
  Which which;
  Order order;
  std::optional<std::string> timeout;
  bool wait = false;
  Output output;
  Arguments arguments(text);
  which.add_to(arguments);
  arguments.option("--reason", order.reason, "TEXT", "reason that is shown with the GPU or node");
  if (change.can_end) {
    arguments.option("--until", order.until, "TIME",
                     "back into service by itself then: 2h, 18:00, 2026-01-31T12:00 (default: by "
                     "'online')");
  }
  if (change.can_force) {
    arguments.flag("--force", order.force, "stop the jobs that hold it; they are queued again");
  }
  if (change.can_wait) {
    arguments.flag("--wait", wait, "wait until no job holds it, and print the jobs that still do")
        .option("--timeout", timeout, "DURATION",
                "with --wait: give up after this (exit code 124); it stays drained");
  }
  arguments.output(output, {"gpus", "uuid"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  which.take_word();
  std::optional<base::Duration> at_most;
  if (timeout.has_value()) {
    const auto duration = base::parse_duration(*timeout);
    if (!duration) return usage_error(console, "--timeout: " + duration.error().message, text.name);
    at_most = *duration;
  }
  if (which.given() != 1) {
    return usage_error(console, "give exactly one of NODE, NODE:INDEX, --gpu-id, --gpu and --node",
                       text.name);
  }
  if (const auto mistake = which.mistake()) return usage_error(console, *mistake, text.name);
  if (order.reason && !api::is_valid_utf8(*order.reason)) {
    return usage_error(console, "--reason: the text is not valid UTF-8", text.name);
  }
  if (order.until) {
    const auto time = coming_time("--until", *order.until, console.process_environment().now());
    if (!time) return usage_error(console, "--until: " + time.error().message, text.name);
    order.until = *time;
  }
  const auto body = client->post(std::string(change.path), gpu_request_body(which, order));
  if (!body) return report(console, body.error(), output.wants_documents());
  const auto answer = client::message_of<v1::ChangeGpusResponse>(*body);
  const int code = output.is_document() || !answer
                       ? print_document(console, output, *body)
                       : tell_changed(console, *client, *answer, which, change);
  if (code != kOk || !wait) return code;
  return await_empty(console, *client, {which.gpu_id, which.gpu, which.node}, at_most);
}

int show_one(Console& console, Client& client, const Which& which, const Output& output) {
  const std::string query = which.gpu_id ? "gpu_id=" + base::percent_encoded(*which.gpu_id)
                                         : "gpu=" + base::percent_encoded(*which.gpu);
  return show_message<v1::GpuHealth>(
      console, client, output, "/v1/gpus/health?" + query,
      [&](Console& shown, const v1::GpuHealth& health) {
        std::set<std::string> jobs(health.gpu().jobs().begin(), health.gpu().jobs().end());
        for (const v1::GpuProcess& process : health.processes()) {
          if (!process.job().empty()) jobs.insert(process.job());
        }
        shown.out(health_page(health, shown.process_environment().now(), job_names(client, jobs)));
      });
}

void print_all(Console& console, const Output& output, v1::ListGpusResponse& answer,
               bool with_well) {
  GpuHealthList& gpus = *answer.mutable_gpus();
  put_in_node_order(gpus, [](const v1::GpuHealth& health) { return health.gpu().node(); });
  if (gpus.empty()) return console.note("there are no GPUs");
  const base::Instant now = console.process_environment().now();
  const auto all = static_cast<std::size_t>(gpus.size());
  std::size_t unwell = 0;
  std::size_t emulated = 0;
  for (const v1::GpuHealth& health : gpus) {
    unwell += troubles_of(health, now).empty() ? 0 : 1;
    emulated += health.gpu().emulated() ? 1 : 0;
  }
  console.out(fmt::format(
      "{}{}, {}\n", counted(all, "GPU"), emulated_mark(emulated, all),
      unwell == 0 ? std::string("nothing wrong") : fmt::format("{} with something wrong", unwell)));
  const Table table =
      health_table(gpus, now, {.with_well = with_well, .has_marks = emulated < all});
  if (!table.empty()) console.out("\n" + table.render(output.style(console)));
  if (!with_well && unwell > 0 && unwell < all) {
    console.note("--all shows the other GPUs, too");
  }
}

}  // namespace

int run_drain(const CommandText& text, Invocation& invocation) {
  return run_change(
      text, invocation,
      {.path = "/v1/gpus/drain", .doing = "drained", .can_wait = true, .can_end = true});
}

int run_offline(const CommandText& text, Invocation& invocation) {
  return run_change(
      text, invocation,
      {.path = "/v1/gpus/offline", .doing = "taken offline", .can_force = true, .can_end = true});
}

int run_online(const CommandText& text, Invocation& invocation) {
  return run_change(text, invocation, {.path = "/v1/gpus/online", .doing = "brought online"});
}

int run_health(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Which which;
  Output output;
  Arguments arguments(text);
  bool all = false;
  which.add_to(arguments);
  arguments.flag("--all", all, "also GPUs with nothing wrong")
      .output_and_watch(output, {"gpus", "gpu/uuid"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  which.take_word();
  if (which.given() > 1) {
    return usage_error(console, "give at most one of NODE, NODE:INDEX, --gpu-id, --gpu and --node",
                       text.name);
  }
  if (const auto mistake = which.mistake()) return usage_error(console, *mistake, text.name);
  const bool one = which.gpu_id.has_value() || which.gpu.has_value();
  if (one) {
    output.names = {"", "gpu/uuid"};
    return show_one(console, *client, which, output);
  }
  return show_message<v1::ListGpusResponse>(
      console, *client, output,
      which.node ? "/v1/gpus?node=" + base::percent_encoded(*which.node) : "/v1/gpus",
      [&](Console& shown, v1::ListGpusResponse& answer) { print_all(shown, output, answer, all); });
}

}  // namespace gpu_platform::cli
