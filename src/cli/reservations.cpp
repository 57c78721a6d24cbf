#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/input.h"
#include "cli/json_view.h"
#include "cli/table.h"
#include "cli/text.h"

// Reservations.

namespace gpu_platform::cli {

namespace {

constexpr std::string_view kPath = "/v1/reservations";
constexpr std::uint64_t kMaxGpus = 65535;
constexpr std::uint64_t kMaxGpusPerNode = 64;

struct CreateOptions {
  std::vector<std::string> name, teams, users, nodes;
  std::optional<std::string> begin, end, duration, gpus, gpus_per_node, gpu_type;
  bool maintenance = false;
  bool ignore_running = false;
  bool json = false;
};

base::Status put_count(Json& body, const char* key, std::string_view option,
                       const std::optional<std::string>& text, std::uint64_t most) {
  if (!text) return {};
  const auto count = base::parse_count(*text, 1, most);
  if (!count) return base::invalid(std::string(option), count.error().message);
  body[key] = *count;
  return {};
}

base::Result<Json> body_of(const CreateOptions& o, base::Instant now) {
  Json body;
  body["name"] = o.name.front();
  // The daemon's present, which is not quite ours.
  if (o.begin && *o.begin != "now") TRY(put_future_time(body, "begin", o.begin, now));
  TRY(put_future_time(body, "end", o.end, now));
  if (o.duration) {
    const auto duration = base::parse_duration(*o.duration);
    if (!duration) return base::invalid("--duration", duration.error().message);
    body["duration_seconds"] = static_cast<double>(base::whole_milliseconds(*duration)) / 1000;
  }
  if (o.maintenance) body["maintenance"] = true;
  const auto put = [&](const char* key, const std::vector<std::string>& words) {
    if (!words.empty()) body[key] = words;
  };
  put("teams", words_of_lists(o.teams));
  put("users", words_of_lists(o.users));
  put("nodes", o.nodes);
  TRY(put_count(body, "gpus", "--gpus", o.gpus, kMaxGpus));
  TRY(put_count(body, "gpus_per_node", "--gpus-per-node", o.gpus_per_node, kMaxGpusPerNode));
  if (o.gpu_type) body["gpu_type"] = *o.gpu_type;
  if (o.ignore_running) body["ignore_running"] = true;
  for (const auto& [option, words] : {std::pair{"NAME", &o.name},
                                      {"--team", &o.teams},
                                      {"--user", &o.users},
                                      {"--nodes", &o.nodes}}) {
    for (const std::string& word : *words) TRY(check_text(option, word));
  }
  return body;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string admitted(const Json& reservation) {
  if (flag_at(reservation, "maintenance")) return "maintenance";
  std::string text;
  for (const auto& [key, noun] : {std::pair{"teams", "team"}, {"users", "user"}}) {
    const auto names = texts_at(reservation, key);
    if (names.empty()) continue;
    if (!text.empty()) text += "; ";
    text += fmt::format("{} {}", noun, joined(names));
  }
  return text;
}

std::string time_of(const Json& reservation, std::string_view key) {
  const auto at = time_at(reservation, key);
  return at ? local_time(*at) : std::string();
}

// "dgx-1 (all), dgx-2 (0, 1)"
std::string places(const Json& reservation) {
  std::vector<std::string> texts;
  for (const Json& node : list_at(reservation, "nodes")) {
    const std::string which =
        flag_at(node, "whole_node") ? std::string("all") : joined(texts_at(node, "gpus"));
    texts.push_back(fmt::format("{} ({})", text_at(node, "node"), which));
  }
  return joined(texts);
}

std::string page_of(const Json& reservation) {
  const std::array<std::pair<std::string_view, std::string>, 8> rows = {{
      {"Reservation", text_at(reservation, "name")},
      {"State", flag_at(reservation, "active") ? "active" : "to come"},
      {"From", time_of(reservation, "begin")},
      {"To", time_of(reservation, "end")},
      {"For", admitted(reservation)},
      {"GPUs", fmt::format("{}: {}", text_at(reservation, "gpu_count"), places(reservation))},
      {"Let finish", joined(texts_at(reservation, "let_finish"))},
      {"Made",
       fmt::format("{} by {}", time_of(reservation, "made_at"), text_at(reservation, "made_by"))},
  }};
  std::string page;
  for (const auto& [name, value] : rows) {
    if (!value.empty()) page += fmt::format("{:<14}{}\n", name, harmless(value));
  }
  return page;
}

// Prints one reservation, or what went wrong.
int show(Console& console, const Called<std::string>& answer, bool json) {
  if (!answer) return report(console, answer.error(), json);
  const auto reservation = parse_object(*answer);
  if (json || !reservation) return print_document(console, *answer);
  console.out(page_of(*reservation));
  return console.out_failed() ? kFailure : kOk;
}

struct Named {
  std::vector<std::string> name;
  bool json = false;
};

std::expected<Client, int> open_for(const CommandText& text, Invocation& invocation, Named& named) {
  Arguments arguments(text);
  arguments.words("NAME", named.name, 1, 1, "the reservation")
      .flag("--json", named.json, "print JSON");
  return open_client(arguments, invocation);
}

std::string path_of(const Named& named) {
  return fmt::format("{}/{}", kPath, percent_encoded(named.name.front()));
}

}  // namespace

int run_reservations_create(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  CreateOptions o;
  Arguments arguments(text);
  arguments.words("NAME", o.name, 1, 1, "its name, for submit --reservation NAME")
      .option("--begin", o.begin, "TIME", "begin: tomorrow, 16:00, 2026-01-31T12:00 (default: now)")
      .option("--end", o.end, "TIME", "until then")
      .option("--duration", o.duration, "DURATION", "length, instead of --end: 4h, 2d")
      .many("--team", o.teams, "NAME[,NAME]", "admit jobs of these teams and the teams below them")
      .many("--user", o.users, "NAME[,NAME]", "admit jobs of these users")
      .flag("--maintenance", o.maintenance, "admit no jobs")
      .many("--nodes", o.nodes, "NODE[,NODE]", "whole nodes: dgx-1,dgx-[3-4]")
      .option("--gpus-per-node", o.gpus_per_node, "N",
              "only this number of GPUs of each of these nodes")
      .option("--gpus", o.gpus, "N",
              "this number of GPUs of one type, on nodes that the platform chooses")
      .option("--gpu-type", o.gpu_type, "TYPE", "type of these GPUs (default: any)")
      .flag("--ignore-running", o.ignore_running,
            "let jobs finish that may still run then (default: refuse)")
      .flag("--json", o.json, "print JSON");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto body = body_of(o, console.surroundings().now());
  if (!body) {
    return usage_error(console, fmt::format("{}: {}", body.error().field, body.error().message),
                       text.name);
  }
  return show(console, client->post(std::string(kPath), json_text(*body)), o.json);
}

int run_reservations_describe(const CommandText& text, Invocation& invocation) {
  Named named;
  auto client = open_for(text, invocation, named);
  if (!client) return client.error();
  return show(invocation.console, client->get(path_of(named)), named.json);
}

int run_reservations_cancel(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Named named;
  auto client = open_for(text, invocation, named);
  if (!client) return client.error();
  const auto answer = client->remove(path_of(named));
  if (!answer) return report(console, answer.error(), named.json);
  if (named.json) return print_document(console, *answer);
  console.out(fmt::format("reservation {} is cancelled\n", harmless(named.name.front())));
  return console.out_failed() ? kFailure : kOk;
}

int run_reservations_list(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  bool json = false;
  Arguments arguments(text);
  arguments.flag("--json", json, "print JSON");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto answer = client->get(std::string(kPath));
  if (!answer) return report(console, answer.error(), json);
  const auto list = parse_object(*answer);
  if (json || !list) return print_document(console, *answer);
  Table table({{"NAME"},
               {"STATE"},
               {"FROM"},
               {"TO"},
               {"GPUS", Column::Align::kRight},
               {"FOR", Column::Align::kLeft, 12},
               {"NODES", Column::Align::kLeft, 16}});
  for (const Json& reservation : list_at(*list, "reservations")) {
    table.add({text_at(reservation, "name"), flag_at(reservation, "active") ? "active" : "to come",
               time_of(reservation, "begin"), time_of(reservation, "end"),
               text_at(reservation, "gpu_count"), admitted(reservation), places(reservation)});
  }
  if (table.empty()) {
    console.note("nothing is reserved");
    return kOk;
  }
  console.out(table.render(console.surroundings().width));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
