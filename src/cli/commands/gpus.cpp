#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/convert/job.h"
#include "api/convert/text_forms.h"
#include "base/parse.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/jobs/await_empty.h"
#include "cli/text/gpu_text.h"
#include "cli/text/job_names.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"
#include "cli/words/gpu_choice.h"
#include "cli/words/input.h"
#include "client/request_text.h"

// The commands that take GPUs out of service, and bring them back.

namespace gpu_platform::cli {

namespace {

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
  std::optional<std::string> until;
  std::optional<base::Instant> until_time;  // as it was read
  bool force = false;
};

std::string gpu_request_body(const GpuChoice& which, const Order& order) {
  v1::ChangeGpusRequest request;
  if (which.gpu_id) request.set_gpu_id(*which.gpu_id);
  if (which.gpu) request.set_gpu(*which.gpu);
  if (which.node) request.set_node(*which.node);
  if (order.reason) request.set_reason(*order.reason);
  if (order.until_time) api::to_proto(*order.until_time, *request.mutable_until());
  request.set_force(order.force);
  return client::request_text(request);
}

// The ids of the jobs that hold these GPUs.
std::set<std::string> jobs_on(const ClusterGpus& gpus) {
  std::set<std::string> jobs;
  for (const v1::Gpu& gpu : gpus) jobs.insert(gpu.jobs().begin(), gpu.jobs().end());
  return jobs;
}

int tell_changed(Console& console, Client& client, const v1::ChangeGpusResponse& answer,
                 const GpuChoice& which, const Change& change) {
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
  GpuChoice which;
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
    order.until_time = *time;
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

}  // namespace gpu_platform::cli
