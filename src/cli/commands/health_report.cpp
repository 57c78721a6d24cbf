#include <fcntl.h>

#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/utc.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/text/anonymous.h"
#include "cli/text/evidence_lines.h"
#include "cli/text/json_view.h"
#include "cli/text/text.h"
#include "cli/words/gpu_choice.h"
#include "cli/words/input.h"
#include "os/replaced_file.h"

// gpu-platform health evidence, health report: what is kept about GPUs, for other programs and for
// a vendor.

namespace gpu_platform::cli {

namespace {

struct EvidenceOptions {
  GpuChoice which;
  std::optional<std::string> since;
  std::optional<std::string> file;
  Output output;
};

// Defines the options of which GPUs; reads the words. The exit code after a mistake.
std::expected<Client, int> read_choice(Arguments& arguments, Invocation& invocation,
                                       const CommandText& text, EvidenceOptions& options) {
  Console& console = invocation.console;
  auto client = open_client(arguments, invocation);
  if (!client) return client;
  options.which.take_word();
  if (options.which.given() > 1) {
    return std::unexpected(usage_error(
        console, "give at most one of NODE, NODE:INDEX, --gpu-id, --gpu and --node", text.name));
  }
  if (const auto mistake = options.which.mistake()) {
    return std::unexpected(usage_error(console, *mistake, text.name));
  }
  if (!options.since) return client;
  const auto time = past_time("--since", *options.since, console.process_environment().now());
  if (!time)
    return std::unexpected(usage_error(console, "--since: " + time.error().message, text.name));
  options.since = *time;
  return client;
}

std::string evidence_query(const EvidenceOptions& options) {
  std::string query = options.which.query();
  if (!options.since) return query;
  return fmt::format("{}{}since={}", query, query.empty() ? "" : "&", *options.since);
}

// ---- the report

// What tells of users and their work. Reasons are in the words of people; the taints and verdicts
// have the facts.
const std::set<std::string_view>& keys_of_users() {
  static const std::set<std::string_view> keys = {"user",       "program", "command", "by",
                                                  "changed_by", "reason",  "jobs"};
  return keys;
}

// The words of people and the last words of jobs.
void remove_words_of_people(Json& report) {
  for (Json& piece : report["evidence"]) {
    if (text_at(piece, "source") == "JOB") piece.erase("text");
  }
  for (Json& gpu : report["gpus"]) {
    gpu.erase("evidence");  // it is in the list of all
    if (!gpu.contains("taints")) continue;
    for (Json& taint : gpu["taints"]) {
      const std::string source = text_at(taint, "source");
      if (source == "OPERATOR" || source == "PROCESSES") taint.erase("text");
    }
  }
}

// Without names of users: neither in fields nor in sentences.
void make_anonymous(Json& report) {
  std::set<std::string> names;
  collect_texts(report, {"user", "program", "command", "by", "changed_by"}, names);
  // Parties that are no users.
  for (const char* party : {"node", "cluster", "health", "platform", "root"}) names.erase(party);
  remove_words_of_people(report);
  remove_keys(report, keys_of_users());
  remove_words(report, names);
}

// The values of the configuration that judge GPUs; none for a caller who may not read them.
Json health_settings(Client& client) {
  Json settings = Json::array();
  const auto body = client.get("/v1/configuration");
  const Json document = body ? parse_object(*body).value_or(Json()) : Json();
  for (const Json& value : list_at(document, "values")) {
    if (text_at(value, "key").starts_with("health.")) settings.push_back(value);
  }
  return settings;
}

Called<Json> document_at(Client& client, const std::string& target) {
  const auto body = client.get(target);
  if (!body) return std::unexpected(body.error());
  auto document = parse_object(*body);
  if (!document) return std::unexpected(client::bad_answer("an answer is not a JSON object"));
  return *std::move(document);
}

Called<Json> gpus_of(Client& client, const GpuChoice& which) {
  if (which.is_one_gpu()) {
    const auto one = document_at(client, "/v1/gpus/health?" + which.query());
    if (!one) return std::unexpected(one.error());
    return Json::array({*one});
  }
  const auto all = document_at(client, which.node ? "/v1/gpus?" + which.query() : "/v1/gpus");
  if (!all) return std::unexpected(all.error());
  return list_at(*all, "gpus");
}

// The nodes of these GPUs.
Called<Json> nodes_of(Client& client, const Json& gpus) {
  std::set<std::string> names;
  for (const Json& gpu : gpus) names.insert(text_at(object_at(gpu, "gpu"), "node"));
  const auto all = document_at(client, "/v1/nodes");
  if (!all) return std::unexpected(all.error());
  Json nodes = Json::array();
  for (const Json& node : list_at(*all, "nodes")) {
    if (names.contains(text_at(node, "name"))) nodes.push_back(node);
  }
  return nodes;
}

Called<Json> report_of(Console& console, Client& client, const EvidenceOptions& options) {
  const auto version = document_at(client, "/v1/version");
  if (!version) return std::unexpected(version.error());
  auto gpus = gpus_of(client, options.which);
  if (!gpus) return std::unexpected(gpus.error());
  auto nodes = nodes_of(client, *gpus);
  if (!nodes) return std::unexpected(nodes.error());
  const std::string query = evidence_query(options);
  const auto evidence =
      document_at(client, query.empty() ? "/v1/gpus/evidence" : "/v1/gpus/evidence?" + query);
  if (!evidence) return std::unexpected(evidence.error());
  Json report;
  report["form"] = "gpu-platform health report 1";
  report["made_at"] = base::utc(console.process_environment().now());
  report["daemon"] = *version;
  report["settings"] = health_settings(client);
  report["nodes"] = *std::move(nodes);
  report["gpus"] = *std::move(gpus);
  report["evidence"] = list_at(*evidence, "evidence");
  make_anonymous(report);
  return report;
}

}  // namespace

int run_health_evidence(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  EvidenceOptions options;
  Arguments arguments(text);
  options.which.add_to(arguments);
  arguments.option("--since", options.since, "TIME", "only what was seen since: 2h, 7d, 2026-01-31")
      .output(options.output, {"evidence", "gpu_id"});
  auto client = read_choice(arguments, invocation, text, options);
  if (!client) return client.error();
  const std::string query = evidence_query(options);
  if (options.output.is_document()) {
    const auto body =
        client->get(query.empty() ? "/v1/gpus/evidence" : "/v1/gpus/evidence?" + query);
    if (!body) return report(console, body.error(), options.output.wants_documents());
    return print_document(console, options.output, *body);
  }
  const auto lines = kept_evidence_lines(*client, query);
  if (!lines) return report(console, lines.error(), false);
  if (lines->empty()) console.note("there is no evidence");
  console.out(*lines);
  return console.out_failed() ? kFailure : kOk;
}

int run_health_report(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  EvidenceOptions options;
  Arguments arguments(text);
  options.which.add_to(arguments);
  arguments.option("--since", options.since, "TIME", "only evidence since: 2h, 7d, 2026-01-31")
      .option("--output-file", options.file, "FILE",
              "write the report there; a file of that name is replaced (default: print it)");
  auto client = read_choice(arguments, invocation, text, options);
  if (!client) return client.error();
  const auto document = report_of(console, *client, options);
  if (!document) return report(console, document.error(), false);
  const std::string report_text = document->dump(2, ' ', false, Json::error_handler_t::replace);
  if (!options.file) {
    console.out(report_text + "\n");
    return console.out_failed() ? kFailure : kOk;
  }
  constexpr mode_t kReadableByAll = 0644;
  if (const auto written = os::replace_file(*options.file, report_text + "\n",
                                            kReadableByAll & ~console.process_environment().umask);
      !written) {
    console.error(
        fmt::format("--output-file '{}': {}", harmless(*options.file), written.error().message));
    return kFailure;
  }
  console.note(fmt::format("{}: {}, {} of evidence; read it before you send it",
                           harmless(*options.file), counted((*document)["gpus"].size(), "GPU"),
                           counted((*document)["evidence"].size(), "piece")));
  return kOk;
}

}  // namespace gpu_platform::cli
