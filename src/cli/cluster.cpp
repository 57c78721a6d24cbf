#include <algorithm>

#include <fmt/format.h>

#include "base/parse.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/gpu_text.h"
#include "cli/job_text.h"
#include "cli/json_view.h"
#include "cli/message_text.h"
#include "cli/prediction_text.h"
#include "cli/repeat.h"
#include "cli/table.h"
#include "cli/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

// " (emulated)", " (8 emulated)": also where a table has no room for the marks of its rows.
std::string emulated_mark(const ClusterGpus& gpus) {
  const auto count = std::ranges::count_if(gpus, &v1::Gpu::emulated);
  if (count == 0) return {};
  const bool all = count == gpus.size();
  return all ? " (emulated)" : fmt::format(" ({} emulated)", count);
}

// What this host does not hold; nothing where it holds all.
std::string advisory_guards(const v1::Status& status) {
  std::string names;
  for (const v1::IsolationGuard& guard : status.isolation()) {
    if (guard.held()) continue;
    names += (names.empty() ? "" : ", ") + guard.guard();
  }
  return names.empty() ? names : fmt::format("isolation is advisory for: {}\n", names);
}

std::string totals(const v1::Status& status) {
  std::string line = fmt::format("{}{}, {} available, {:.0f} % allocated\n",
                                 counted(status.total_gpus(), "GPU"), emulated_mark(status.gpus()),
                                 status.available_gpus(), status.utilization() * 100);
  line += fmt::format("{} running, {} queued, {} held, {} suspended\n",
                      counted(status.running_jobs(), "job"), status.queued_jobs(),
                      status.held_jobs(), status.suspended_jobs());
  return line + advisory_guards(status);
}

// A wide one also has the engine and the capacity class of each node.
Table node_table(v1::Status& status, bool is_wide) {
  std::vector<Column> columns = {{"NODE", Align::kLeft, 12},
                                 {"STATE"},
                                 {"GPUS", Align::kRight},
                                 {"FREE", Align::kRight},
                                 {"CPUS USED", Align::kRight, std::nullopt, 1},
                                 {"MEMORY USED", Align::kRight, std::nullopt, 2},
                                 {"DRIVER", Align::kLeft, std::nullopt, 3}};
  if (is_wide) columns.push_back({"ENGINE"});
  if (is_wide) columns.push_back({"CAPACITY"});
  columns.push_back({"REASON", Align::kLeft, 8});
  Table table(std::move(columns));
  put_in_node_order(*status.mutable_nodes(), [](const v1::Node& node) { return node.name(); });
  for (const v1::Node& node : status.nodes()) {
    std::vector<std::string> row = {marked_name(node.name(), node.emulated()),
                                    state_name(node),
                                    fmt::format("{}", node.total_gpus()),
                                    fmt::format("{}", node.available_gpus()),
                                    fmt::format("{}/{}", node.cpus_allocated(), node.cpus()),
                                    memory_of(node.memory_allocated_bytes(), node.memory_bytes()),
                                    node.driver_version()};
    if (is_wide) row.push_back(node.engine());
    if (is_wide) row.push_back(as_word(name_at(node, v1::Node::kCapacityFieldNumber)));
    row.push_back(node.reason());
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

// "~": it may become later. "~12m to 40m": nine in ten start within the longer time.
std::string starts_within(const v1::Job& job, base::Instant now) {
  const auto start = time_of(job.estimated_start());
  if (!start) return "?";
  if (*start <= now) return "a moment";
  const std::string within = age(*start - now);
  if (job.start_guaranteed()) return within;
  const auto late = time_of(job.estimated_start_trust().p90());
  const std::string late_within = late ? age(*late - now) : within;
  return late_within == within ? "~" + within : fmt::format("~{} to {}", within, late_within);
}

namespace {

void print_queue(Console& console, const Output& output, const v1::GetQueueResponse& queue,
                 bool eta) {
  const base::Instant now = console.process_environment().now();
  std::vector<Column> columns = {{"POSITION", Align::kRight},
                                 {"ID", Align::kRight},
                                 {"NAME", Align::kLeft, 8},
                                 {"USER", Align::kLeft, 6},
                                 {"STATE"},
                                 {"PRIORITY"},
                                 {"GPUS", Align::kRight},
                                 {"WAITED", Align::kRight}};
  if (eta) columns.push_back({"STARTS WITHIN", Align::kRight});
  if (eta) columns.push_back({"PREDICTED", Align::kRight, std::nullopt, 1});
  columns.push_back({"REASON", Align::kLeft, 12});
  Table table(std::move(columns));
  for (const v1::Job& job : queue.jobs()) {
    std::vector<std::string> row = {if_known(job.has_queue_position(), job.queue_position()),
                                    shown_id(job),
                                    job.spec().name(),
                                    job.spec().user(),
                                    state_name(job),
                                    job.spec().priority(),
                                    std::to_string(total_gpus(job.spec())),
                                    waited(job, now)};
    if (eta) row.push_back(starts_within(job, now));
    if (eta) row.push_back(predicted_within(job.expected_start(), now));
    row.push_back(job.wait_reason().text());
    table.add(std::move(row));
  }
  if (table.empty()) return console.note("nothing waits");
  console.out(table.render(output.width(console)));
  if (const std::string scores = scores_text(queue.scores()); !scores.empty()) {
    console.note("past predictions: " + scores);
  }
  const std::uint64_t total = queue.total();
  const auto shown = static_cast<std::uint64_t>(queue.jobs_size());
  if (total > shown) console.note(fmt::format("{} more wait behind them", total - shown));
}

}  // namespace

int run_queue(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Output output;
  bool eta = false;
  std::optional<std::string> limit;
  Arguments arguments(text);
  arguments.option("--limit", limit, "N", "maximum number of jobs, from the head (default: 10000)")
      .flag("--eta", eta,
            "add the planned start of each job, by the time limits of the jobs before it and with "
            "the time by which nine in ten start, and its predicted start")
      .output_and_watch(output, {"jobs", "id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  std::uint64_t most = 10'000;
  if (limit.has_value()) {
    const auto count = base::parse_count(*limit, 1, 10'000);
    if (!count) return usage_error(console, "--limit: " + count.error().message, text.name);
    most = *count;
  }
  return show_message<v1::GetQueueResponse>(
      console, *client, output,
      fmt::format("/v1/queue?all=true&limit={}{}", most, eta ? "&eta=true" : ""),
      [&](Console& shown, const v1::GetQueueResponse& queue) {
        print_queue(shown, output, queue, eta);
      });
}

int run_status(const CommandText& text, Invocation& invocation) {
  bool all = false;
  Output output;
  Arguments arguments(text);
  arguments.flag("--all", all, "one row for each GPU").output_and_watch(output, {"nodes", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (all) output.names = {"gpus", "uuid"};
  return show_message<v1::Status>(
      invocation.console, *client, output, "/v1/status", [&](Console& console, v1::Status& status) {
        put_in_node_order(*status.mutable_gpus(), [](const v1::Gpu& gpu) { return gpu.node(); });
        const Table table = all ? gpu_table(status.gpus()) : node_table(status, output.is_wide());
        console.out(totals(status));
        if (!table.empty()) console.out("\n" + table.render(output.width(console)));
      });
}

// One line for each node, as sinfo -N and kubectl get nodes have it.
int run_nodes(const CommandText& text, Invocation& invocation) {
  Output output;
  Arguments arguments(text);
  arguments.output_and_watch(output, {"nodes", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  return show(invocation.console, output, [&](Console& console, int interrupt_fd) -> Called<void> {
    const auto body = client->get_slow("/v1/status", base::Duration(), interrupt_fd);
    if (!body) return std::unexpected(body.error());
    auto status = client::read_answer<v1::Status>(*body, "it");
    if (!status) return std::unexpected(std::move(status).error());
    if (output.is_document()) {
      const Json document = parse_object(*body).value_or(Json());
      const Json nodes = in_node_order(list_at(document, "nodes"), "/name");
      print_document(console, output, json_text(Json{{"nodes", nodes}}));
    } else {
      console.out(node_table(*status, output.is_wide()).render(output.width(console)));
    }
    return {};
  });
}

int run_version(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Output output;
  Arguments arguments(text);
  arguments.output(output, {});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  // The daemon's version is shown where there is a daemon; its absence is no error here.
  const auto body = client->get("/v1/version");
  const auto daemon = body ? client::message_of<v1::Version>(*body) : std::nullopt;
  if (output.is_document()) {
    Json document;
    document["version"] = GP_VERSION;
    document["api"] = "v1";
    document["daemon"] = daemon ? *parse_object(*body) : Json();
    print_document(console, output, json_text(document));
  } else {
    console.out("gpu-platform " GP_VERSION "\n");
    if (daemon) {
      console.out(fmt::format("daemon {} (API {})\n", harmless(daemon->version()),
                              harmless(daemon->api())));
    }
  }
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
