#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/parse.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/screen/repeat.h"
#include "cli/text/array_fold.h"
#include "cli/text/gpu_text.h"
#include "cli/text/job_text.h"
#include "cli/text/json_view.h"
#include "cli/text/message_text.h"
#include "cli/text/prediction_text.h"
#include "cli/text/request_text.h"
#include "cli/text/share_text.h"
#include "cli/text/table.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

// What this host does not hold; nothing where it holds all.
std::string advisory_guards(const v1::Status& status) {
  std::string names;
  for (const v1::IsolationGuard& guard : status.isolation()) {
    if (guard.held()) continue;
    names += (names.empty() ? "" : ", ") + guard.guard();
  }
  return names.empty() ? names : fmt::format("isolation is advisory for: {}\n", names);
}

std::size_t emulated_count(const ClusterGpus& gpus) {
  return static_cast<std::size_t>(std::ranges::count_if(gpus, &v1::Gpu::emulated));
}

// "1 GPU out of service, 8 GPUs draining: gpu-platform health"; empty if every GPU is well.
std::string broken_gpus(const ClusterGpus& gpus) {
  std::size_t out = 0;
  std::size_t draining = 0;
  std::size_t degraded = 0;
  std::size_t resetting = 0;
  std::size_t others = 0;
  for (const v1::Gpu& gpu : gpus) {
    if (gpu.state() == v1::GPU_STATE_DRAINING) {
      ++draining;
    } else if (gpu.state() == v1::GPU_STATE_DEGRADED) {
      ++degraded;
    } else if (gpu.state() == v1::GPU_STATE_RESETTING) {
      ++resetting;
    } else if (!is_in_service(gpu)) {
      ++out;
    } else if (!gpu.reason().empty() && gpu.state() != v1::GPU_STATE_CLEANING) {
      ++others;
    }
  }
  std::vector<std::string> parts;
  const auto add = [&](std::size_t count, std::string_view what) {
    if (count > 0) parts.push_back(fmt::format("{} {}", counted(count, "GPU"), what));
  };
  add(out, "out of service");
  add(draining, "draining");
  add(resetting, "being reset");
  add(degraded, "degraded");
  add(others, "with a problem");
  return parts.empty() ? std::string() : joined(parts, ", ") + ": gpu-platform health\n";
}

// "; yours: 2 running, 5 waiting"; nothing if the daemon does not say.
std::string own_jobs(Client& client) {
  const auto list =
      client.ask<v1::ListJobsResponse>("/v1/jobs?fields=jobs.state&limit=10000", "a list");
  if (!list) return {};
  std::size_t waiting = 0;
  for (const v1::Job& job : list->jobs()) {
    const bool waits = job.state() == v1::JOB_STATE_HELD || job.state() == v1::JOB_STATE_PENDING ||
                       job.state() == v1::JOB_STATE_QUEUED;
    waiting += waits ? 1 : 0;
  }
  const std::size_t all = static_cast<std::size_t>(list->jobs_size());
  if (all == 0) return "; none of them yours";
  return fmt::format("; yours: {} running, {} waiting", all - waiting, waiting);
}

// "no readings of n1 and 2 more: why", a line for each reason; no more than three.
std::string missing_readings(const v1::Status& status) {
  constexpr std::size_t kMaxReasons = 3;
  std::map<std::string, std::vector<std::string>> nodes;  // by reason
  for (const v1::Node& node : status.nodes()) {
    if (node.has_no_readings()) nodes[node.no_readings()].push_back(node.name());
  }
  std::string text;
  std::size_t shown = 0;
  for (const auto& [reason, names] : nodes) {
    if (shown++ == kMaxReasons) {
      return text +
             fmt::format("and {} other reasons for no readings\n", nodes.size() - kMaxReasons);
    }
    const std::string first = *std::ranges::min_element(names);
    const std::string others =
        names.size() == 1 ? std::string() : fmt::format(" and {} more", names.size() - 1);
    text += fmt::format("no readings of {}{}: {}\n", harmless(first), others, harmless(reason));
  }
  return text;
}

std::string totals(const v1::Status& status, Client& client) {
  std::string text = fmt::format("server {}\n", harmless(client.answered()));
  const std::string used = status.has_gpu_utilization()
                               ? fmt::format(", {:.0f} % used", status.gpu_utilization() * 100)
                               : std::string();
  text += fmt::format(
      "{}{}, {} available, {:.0f} % allocated{}\n", counted(status.total_gpus(), "GPU"),
      emulated_mark(emulated_count(status.gpus()), static_cast<std::size_t>(status.gpus_size())),
      free_gpus_text(status.available_gpus(), status.available_share()), status.utilization() * 100,
      used);
  text += broken_gpus(status.gpus());
  text += missing_readings(status);
  text += fmt::format("{} running, {} queued, {} held, {} suspended{}\n",
                      counted(status.running_jobs(), "job"), status.queued_jobs(),
                      status.held_jobs(), status.suspended_jobs(), own_jobs(client));
  return text + advisory_guards(status);
}

// A wide one also has the engine and the capacity class of each node. Without marks, no row says
// that its node is emulated.
struct NodeTableOptions {
  bool is_wide = false;
  bool has_marks = true;
};
Table node_table(v1::Status& status, const NodeTableOptions& options) {
  const bool is_wide = options.is_wide;
  const std::size_t least_name = options.has_marks ? 22 : 12;  // the mark stays whole
  std::vector<Column> columns = {{"NODE", Align::kLeft, least_name},
                                 {.title = "STATE", .is_state = true},
                                 {"GPUS", Align::kRight},
                                 {"FREE", Align::kRight},
                                 {"CPUS USED", Align::kRight, std::nullopt, 1},
                                 {"MEMORY USED", Align::kRight, std::nullopt, 2},
                                 {"DRIVER", Align::kLeft, std::nullopt, 3}};
  if (is_wide) columns.push_back({"ENGINE"});
  if (is_wide) columns.push_back({"CAPACITY"});
  columns.push_back({.title = "REASON", .cut_to = 16, .wraps = true});
  Table table(std::move(columns));
  put_in_node_order(*status.mutable_nodes(), [](const v1::Node& node) { return node.name(); });
  for (const v1::Node& node : status.nodes()) {
    std::vector<std::string> row = {marked_name(node.name(), node.emulated() && options.has_marks),
                                    state_name(node),
                                    fmt::format("{}", node.total_gpus()),
                                    free_gpus_text(node.available_gpus(), node.available_share()),
                                    fmt::format("{}/{}", node.cpus_allocated(), node.cpus()),
                                    memory_of(node.memory_allocated_bytes(), node.memory_bytes()),
                                    node.driver_version()};
    if (is_wide) row.push_back(node.engine());
    if (is_wide) row.push_back(as_word(name_at(node, v1::Node::kCapacityFieldNumber)));
    row.push_back(with_local_times(node.reason()));
    table.add(std::move(row));
  }
  return table;
}

// Neighbours in the queue that wait for the same, as members of one array do, are one line.
using QueueGroup = std::vector<const v1::Job*>;
std::vector<QueueGroup> queue_groups(const v1::GetQueueResponse& queue, bool is_expanded) {
  std::vector<QueueGroup> groups;
  std::string last;
  for (const v1::Job& job : queue.jobs()) {
    const auto fold = is_expanded ? std::nullopt : array_fold(job);
    if (!fold || fold->key != last || groups.empty()) groups.emplace_back();
    groups.back().push_back(&job);
    last = fold ? fold->key : std::string();
  }
  return groups;
}

std::string position_of(const QueueGroup& group) {
  const v1::Job& first = *group.front();
  const v1::Job& last = *group.back();
  if (!first.has_queue_position()) return {};
  const std::string text = std::to_string(first.queue_position());
  return group.size() == 1 ? text : fmt::format("{}-{}", text, last.queue_position());
}

std::string id_of(const QueueGroup& group) {
  if (group.size() == 1) return shown_id(*group.front());
  std::vector<std::int64_t> members;
  for (const v1::Job* job : group) members.push_back(job->array_index());
  std::ranges::sort(members);
  return fmt::format("{}_[{}]", group.front()->array_id(), ranges_of(members));
}

// Times from now on, of one job or of several.
class Span {
 public:
  void add(std::optional<base::Instant> from, std::optional<base::Instant> to) {
    if (!from) {
      is_whole_ = false;
      return;
    }
    from_ = from_ ? std::min(*from_, *from) : *from;
    to_ = std::max(to_.value_or(*from), to.value_or(*from));
  }

  // "12m to 40m"; empty without a time. "12m to ?": not all jobs have one.
  std::string shown(base::Instant now) const {
    if (!from_) return {};
    const auto within = [&](base::Instant at) {
      return at <= now ? std::string("a moment") : age(at - now);
    };
    const std::string from = within(*from_);
    const std::string to = is_whole_ ? within(*to_) : "?";
    return from == to ? from : fmt::format("{} to {}", from, to);
  }

 private:
  bool is_whole_ = true;
  std::optional<base::Instant> from_, to_;
};

// "~": it may become later. "~12m to 40m": nine in ten start within the longer time.
std::string starts_within(const QueueGroup& group, base::Instant now) {
  Span span;
  bool is_promised = true;
  for (const v1::Job* job : group) {
    const auto start = time_of(job->estimated_start());
    const bool may_be_later = !job->start_guaranteed() && start && *start > now;
    span.add(start, may_be_later ? time_of(job->estimated_start_trust().p90()) : std::nullopt);
    if (may_be_later) is_promised = false;
  }
  const std::string text = span.shown(now);
  if (text.empty()) return "?";
  return is_promised ? text : "~" + text;
}

std::string predictions_of(const QueueGroup& group, base::Instant now) {
  Span span;
  for (const v1::Job* job : group) {
    const auto p90 = time_of(job->expected_start().p90());
    span.add(p90 ? time_of(job->expected_start().p50()) : std::nullopt, p90);
  }
  return span.shown(now);
}

struct QueueOptions {
  bool eta = false;
  bool is_expanded = false;  // a line for each member of an array
};

Table queue_table(const v1::GetQueueResponse& queue, const QueueOptions& options,
                  base::Instant now) {
  const bool eta = options.eta;
  std::vector<Column> columns = {{"POSITION", Align::kRight},
                                 {"ID", Align::kRight},
                                 {"NAME", Align::kLeft, 8},
                                 {"USER", Align::kLeft, 6},
                                 {.title = "STATE", .expendable = 3, .is_state = true},
                                 {"PRIORITY", Align::kLeft, std::nullopt, 4},
                                 {"GPUS", Align::kRight},
                                 {"WAITED", Align::kRight, std::nullopt, eta ? 2 : 1}};
  if (eta) columns.push_back({"STARTS WITHIN", Align::kRight});
  if (eta) columns.push_back({"PREDICTED", Align::kRight, std::nullopt, 1});
  columns.push_back({.title = "REASON", .cut_to = 24, .wraps = true});
  Table table(std::move(columns));
  for (const QueueGroup& group : queue_groups(queue, options.is_expanded)) {
    const v1::Job& job = *group.front();
    std::vector<std::string> row = {position_of(group),
                                    id_of(group),
                                    job.spec().name(),
                                    job.spec().user(),
                                    state_name(job),
                                    job.spec().priority(),
                                    share_text(gpus_in_all(job.spec())),
                                    waited(job, now)};
    if (eta) row.push_back(starts_within(group, now));
    if (eta) row.push_back(predictions_of(group, now));
    row.push_back(with_local_times(job.wait_reason().text()));
    table.add(std::move(row));
  }
  return table;
}

void print_queue(Console& console, const Output& output, const v1::GetQueueResponse& queue,
                 const QueueOptions& options) {
  const Table table = queue_table(queue, options, console.process_environment().now());
  if (table.empty()) console.note("nothing waits");
  if (!table.empty()) console.out(table.render(output.style(console)));
  if (output.is_wide() && !queue.scores().empty()) {
    console.note("past predictions: " + scores_text(queue.scores()));
  }
  const std::uint64_t total = queue.total();
  const auto shown = static_cast<std::uint64_t>(queue.jobs_size());
  if (total > shown) console.note(fmt::format("{} more wait behind them", total - shown));
  if (queue.hidden() > 0) {
    console.note(fmt::format("{} of other users {} not shown",
                             counted(queue.hidden(), "waiting job"),
                             queue.hidden() == 1 ? "is" : "are"));
  }
}

}  // namespace

int run_queue(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Output output;
  QueueOptions options;
  std::optional<std::string> limit;
  Arguments arguments(text);
  arguments.option("--limit", limit, "N", "maximum number of jobs, from the head (default: 10000)")
      .flag("--eta", options.eta,
            "add the planned start of each job, by the time limits of the jobs before it and with "
            "the time by which nine in ten start, and its predicted start")
      .flag("-r,--expand", options.is_expanded,
            "a line for each waiting member of an array, not one for equal ones")
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
      fmt::format("/v1/queue?all=true&limit={}{}", most, options.eta ? "&eta=true" : ""),
      [&](Console& shown, const v1::GetQueueResponse& queue) {
        print_queue(shown, output, queue, options);
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
        const bool has_marks = !all_emulated(status.gpus());
        const Table table =
            all ? gpu_table(status.gpus(), job_labels(*client), has_marks)
                : node_table(status, {.is_wide = output.is_wide(), .has_marks = has_marks});
        console.out(totals(status, *client));
        if (!table.empty()) console.out("\n" + table.render(output.style(console)));
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
      const bool is_emulated =
          !status->nodes().empty() && std::ranges::all_of(status->nodes(), &v1::Node::emulated);
      console.out(node_table(*status, {.is_wide = output.is_wide(),
                                       .has_marks = !is_emulated || output.is_wide()})
                      .render(output.style(console)));
      if (const std::string missing = missing_readings(*status); !missing.empty()) {
        console.out("\n" + missing);
      }
      if (is_emulated && !output.is_wide()) console.note("these nodes are emulated");
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
