#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/letters.h"
#include "base/parse.h"
#include "base/percent.h"
#include "base/suggest.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/text/local_clock.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"
#include "cli/words/input.h"
#include "cli/words/list_command.h"
#include "client/answer.h"
#include "client/request_text.h"
#include "gpu_platform/v1/reservations.pb.h"

// Reservations.

namespace gpu_platform::cli {

namespace {

constexpr std::string_view kPath = "/v1/reservations";
constexpr std::uint64_t kMaxReservedGpus = 65535;
constexpr std::uint64_t kMaxGpusPerNode = 64;

constexpr std::uint64_t kMaxOccurrences = 10'000;
constexpr std::array<std::string_view, 6> kRepeats = {"never",    "hourly",   "daily",
                                                      "weekdays", "weekends", "weekly"};

// The options of create and update.
struct EditOptions {
  std::vector<std::string> name, teams, users, nodes;
  std::optional<std::string> begin, end, duration, gpus, gpus_per_node, gpu_type;
  std::optional<std::string> repeat, until, count;
  bool maintenance = false;
  bool ignore_running = false;
  bool force = false;
  bool skip = false;
  Output output;
};

base::Result<std::uint32_t> count_in(const std::string& text, std::string_view option,
                                     std::uint64_t most, std::uint64_t least = 1) {
  const auto count = base::parse_count(text, least, most);
  if (!count) return base::invalid(std::string(option), count.error().message);
  return static_cast<std::uint32_t>(*count);
}

// The calls that create and update have the same fields, in messages of their own.
template <class Request>
base::Status put_repeat(Request& request, const EditOptions& o, base::Instant now,
                        std::uint64_t least_count) {
  if (o.repeat) {
    if (std::ranges::find(kRepeats, *o.repeat) == kRepeats.end()) {
      return base::invalid(
          "--repeat", fmt::format("'{}' is not one of {}{}", *o.repeat, fmt::join(kRepeats, ", "),
                                  base::did_you_mean(*o.repeat, kRepeats)));
    }
    v1::ReservationRepeat repeat = v1::RESERVATION_REPEAT_UNSPECIFIED;
    v1::ReservationRepeat_Parse("RESERVATION_REPEAT_" + base::to_upper(*o.repeat), &repeat);
    request.set_repeat(repeat);
    // The days are those of the local time zone as it is at the begin.
    if (*o.repeat == "weekdays" || *o.repeat == "weekends") {
      const base::Instant begin = client::time_of(request.begin()).value_or(now);
      request.set_utc_offset_seconds(static_cast<std::int32_t>(local_parts(begin).tm_gmtoff));
    }
  }
  if (o.until) TRY(put_future_time("--until", *o.until, now, *request.mutable_until()));
  if (o.count) {
    TRY_ASSIGN(const std::uint32_t count,
               count_in(*o.count, "--count", kMaxOccurrences, least_count));
    request.set_count(count);
  }
  return {};
}

template <class Request>
base::Status put_times(Request& request, const EditOptions& o, base::Instant now) {
  // The daemon's present, which is not quite ours.
  if (o.begin && *o.begin != "now") {
    TRY(put_future_time("--begin", *o.begin, now, *request.mutable_begin()));
  }
  if (o.end) TRY(put_future_time("--end", *o.end, now, *request.mutable_end()));
  if (!o.duration) return {};
  const auto duration = base::parse_duration(*o.duration);
  if (!duration) return base::invalid("--duration", duration.error().message);
  request.set_duration_seconds(static_cast<double>(base::whole_milliseconds(*duration)) / 1000);
  return {};
}

template <class Request>
base::Status put_gpus(Request& request, const EditOptions& o) {
  if (o.gpus) {
    TRY_ASSIGN(const std::uint32_t gpus, count_in(*o.gpus, "--gpus", kMaxReservedGpus));
    request.set_gpus(gpus);
  }
  if (o.gpus_per_node) {
    TRY_ASSIGN(const std::uint32_t gpus,
               count_in(*o.gpus_per_node, "--gpus-per-node", kMaxGpusPerNode));
    request.set_gpus_per_node(gpus);
  }
  if (o.gpu_type) request.set_gpu_type(*o.gpu_type);
  return {};
}

// All fields but the name.
template <class Request>
base::Result<Request> request_of(const EditOptions& o, base::Instant now,
                                 std::uint64_t least_count) {
  Request request;
  TRY(put_times(request, o, now));
  TRY(put_repeat(request, o, now, least_count));
  TRY(put_gpus(request, o));
  if (o.maintenance) request.set_maintenance(true);
  const auto put = [](google::protobuf::RepeatedPtrField<std::string>& field,
                      const std::vector<std::string>& words) {
    field.Assign(words.begin(), words.end());
  };
  put(*request.mutable_teams(), words_of_lists(o.teams));
  put(*request.mutable_users(), words_of_lists(o.users));
  put(*request.mutable_nodes(), o.nodes);
  if (o.ignore_running) request.set_ignore_running(true);
  if (o.force) request.set_force(true);
  for (const auto& [option, words] : {std::pair{"NAME", &o.name},
                                      {"--team", &o.teams},
                                      {"--user", &o.users},
                                      {"--nodes", &o.nodes}}) {
    for (const std::string& word : *words) TRY(check_text(option, word));
  }
  return request;
}

std::string admitted(const v1::Reservation& reservation) {
  if (reservation.maintenance()) return "maintenance";
  std::string text;
  for (const auto& [names, noun] :
       {std::pair{&reservation.teams(), "team"}, {&reservation.users(), "user"}}) {
    if (names->empty()) continue;
    if (!text.empty()) text += "; ";
    text += fmt::format("{} {}", noun, joined(texts_of(*names), ", "));
  }
  return text;
}

// "dgx-1 (all), dgx-2:0-1", as jobs name their GPUs.
std::string places(const v1::Reservation& reservation) {
  std::vector<std::string> texts;
  for (const v1::ReservedNode& node : reservation.nodes()) {
    const std::vector<std::int64_t> gpus(node.gpus().begin(), node.gpus().end());
    texts.push_back(node.node() + (node.whole_node() ? " (all)" : ":" + ranges_of(gpus)));
  }
  return joined(texts, ", ");
}

// "weekdays until 2026-06-30 09:00"; empty for one that is there once.
std::string repeat_of(const v1::Reservation& reservation) {
  if (reservation.repeat() == v1::RESERVATION_REPEAT_NEVER) return {};
  std::string text = name_at(reservation, v1::Reservation::kRepeatFieldNumber);
  if (text.empty()) return {};
  std::ranges::transform(text, text.begin(), [](char c) { return c - 'A' + 'a'; });
  const std::string until = time_text(reservation.until());
  return until.empty() ? text : fmt::format("{} until {}", text, until);
}

std::string next_begins(const v1::Reservation& reservation) {
  std::vector<std::string> texts;
  for (const auto& begin : reservation.next_begins()) texts.push_back(time_text(begin));
  return joined(texts, ", ");
}

// "8", or "8 (6 in service)".
std::string gpu_count(const v1::Reservation& reservation) {
  const std::uint32_t all = reservation.gpu_count();
  const std::uint32_t up = reservation.gpus_in_service();
  return up == all ? fmt::format("{}", all) : fmt::format("{} ({} in service)", all, up);
}

std::string state_of(const v1::Reservation& reservation) {
  return reservation.active() ? "active" : "to come";
}

std::string page_of(const v1::Reservation& reservation) {
  const std::array<std::pair<std::string_view, std::string>, 10> rows = {{
      {"Reservation", reservation.name()},
      {"State", state_of(reservation)},
      {"Begin", time_text(reservation.begin())},
      {"End", time_text(reservation.end())},
      {"Repeat", repeat_of(reservation)},
      {"Next", next_begins(reservation)},
      {"For", admitted(reservation)},
      {"GPUs", fmt::format("{}: {}", gpu_count(reservation), places(reservation))},
      {"Let finish", joined(texts_of(reservation.let_finish()), ", ")},
      {"Created", fmt::format("{} by {}", time_text(reservation.made_at()), reservation.made_by())},
  }};
  std::string page;
  for (const auto& [name, value] : rows) {
    if (!value.empty()) page += fmt::format("{:<14}{}\n", name, harmless(value));
  }
  return page;
}

// Prints one reservation, or what went wrong.
int show_one(Console& console, const Called<std::string>& answer, const Output& output) {
  if (!answer) return report(console, answer.error(), output.wants_documents());
  const auto reservation = client::message_of<v1::Reservation>(*answer);
  if (output.is_document() || !reservation) return print_document(console, output, *answer);
  console.out(page_of(*reservation));
  return console.out_failed() ? kFailure : kOk;
}

struct Named {
  std::vector<std::string> name;
  Output output;
};

std::expected<Client, int> open_for(const CommandText& text, Invocation& invocation, Named& named) {
  Arguments arguments(text);
  arguments.words("NAME", named.name, 1, 1, "the reservation").output(named.output, {"", "name"});
  return open_client(arguments, invocation);
}

std::string path_of(const Named& named) {
  return fmt::format("{}/{}", kPath, base::percent_encoded(named.name.front()));
}

}  // namespace

namespace {

void add_which(Arguments& arguments, EditOptions& o) {
  arguments
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
            "accept although jobs may still run at its begin; they finish (default: refuse)")
      .flag("--force", o.force,
            "take GPUs that are planned for a waiting job or are being freed for one (default: "
            "refuse)")
      .option("--repeat", o.repeat, "HOW",
              "repeat hourly, daily, weekdays, weekends or weekly, at the same time in UTC")
      .option("--until", o.until, "TIME", "with --repeat: no occurrence begins later")
      .output(o.output, {"", "name"});
}

}  // namespace

int run_reservations_update(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  EditOptions o;
  Arguments arguments(text);
  arguments.words("NAME", o.name, 1, 1, "the reservation")
      .flag("--skip", o.skip, "skip the occurrence that has not ended yet; nothing else changes")
      .option("--begin", o.begin, "TIME", "begin of the occurrence that has not ended yet")
      .option("--end", o.end, "TIME", "its end")
      .option("--duration", o.duration, "DURATION", "its length, instead of --end: 4h, 2d")
      .option("--count", o.count, "N", "occurrences from this one on; 0: they never end");
  add_which(arguments, o);
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  auto request =
      request_of<v1::UpdateReservationRequest>(o, console.process_environment().now(), 0);
  if (request && o.skip) request->set_skip(true);
  if (o.begin == "now") {
    request =
        base::invalid("--begin", "must be in the future; to begin now, create a new reservation");
  } else if (request && request->ByteSizeLong() == 0) {
    request = base::invalid("NAME", "give at least one change, such as --begin or --skip");
  }
  if (!request) {
    return usage_error(
        console, fmt::format("{}: {}", request.error().field, request.error().message), text.name);
  }
  const std::string path =
      fmt::format("{}/{}/update", kPath, base::percent_encoded(o.name.front()));
  return show_one(console, client->post(path, client::request_text(*request)), o.output);
}

int run_reservations_create(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  EditOptions o;
  Arguments arguments(text);
  arguments.words("NAME", o.name, 1, 1, "its name, for submit --reservation NAME")
      .option("--begin", o.begin, "TIME", "begin: tomorrow, 16:00, 2026-01-31T12:00 (default: now)")
      .option("--end", o.end, "TIME", "end of the reservation")
      .option("--duration", o.duration, "DURATION", "length, instead of --end: 4h, 2d")
      .option("--count", o.count, "N", "with --repeat: the number of occurrences");
  add_which(arguments, o);
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  auto request =
      request_of<v1::CreateReservationRequest>(o, console.process_environment().now(), 1);
  if (!request) {
    return usage_error(
        console, fmt::format("{}: {}", request.error().field, request.error().message), text.name);
  }
  request->set_name(o.name.front());
  return show_one(console, client->post(std::string(kPath), client::request_text(*request)),
                  o.output);
}

int run_reservations_describe(const CommandText& text, Invocation& invocation) {
  Named named;
  auto client = open_for(text, invocation, named);
  if (!client) return client.error();
  return show_one(invocation.console, client->get(path_of(named)), named.output);
}

int run_reservations_cancel(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Named named;
  auto client = open_for(text, invocation, named);
  if (!client) return client.error();
  const auto answer = client->remove(path_of(named));
  if (!answer) return report(console, answer.error(), named.output.wants_documents());
  if (named.output.is_document()) return print_document(console, named.output, *answer);
  console.out(fmt::format("reservation {} is cancelled\n", harmless(named.name.front())));
  return console.out_failed() ? kFailure : kOk;
}

namespace {

using ReservationColumn = ListColumn<v1::Reservation>;

constexpr PagedList kReservations{kPath, "reservations", 10'000};

std::vector<ReservationColumn> reservation_columns() {
  using R = v1::Reservation;
  using base::Instant;
  return {{.key = "name",
           .column = {.title = "NAME", .cut_to = 10, .wraps = true},
           .cell = [](const R& r, Instant) { return r.name(); }},
          {.key = "state",
           .column = {.title = "STATE"},
           .cell = [](const R& r, Instant) { return state_of(r); }},
          {.key = "begin",
           .column = {.title = "BEGIN", .cut_to = 10, .wraps = true},
           .cell = [](const R& r, Instant) { return minute_of(r.begin()); },
           .rank = [](const R& r, Instant) { return time_rank(r.begin()); }},
          {.key = "end",
           .column = {.title = "END", .cut_to = 10, .wraps = true},
           .cell = [](const R& r, Instant) { return minute_of(r.end()); },
           .rank = [](const R& r, Instant) { return time_rank(r.end()); }},
          {.key = "repeat",
           .column = {.title = "REPEAT", .cut_to = 10, .expendable = 2, .wraps = true},
           .cell = [](const R& r, Instant) { return repeat_of(r); },
           .is_left_out_if_empty = true},
          {.key = "gpus",
           .column = {"GPUS", Column::Align::kRight},
           .cell = [](const R& r, Instant) { return gpu_count(r); },
           .rank = [](const R& r, Instant) { return static_cast<double>(r.gpu_count()); }},
          {.key = "for",
           .column = {.title = "FOR", .cut_to = 11, .wraps = true},
           .cell = [](const R& r, Instant) { return admitted(r); }},
          {.key = "nodes",
           .column = {.title = "NODES", .cut_to = 12, .expendable = 1, .wraps = true},
           .cell = [](const R& r, Instant) { return places(r); }}};
}

}  // namespace

int run_reservations_list(const CommandText& text, Invocation& invocation) {
  const List<v1::Reservation> list{.pages = kReservations,
                                   .names = {"reservations", "name"},
                                   .columns = reservation_columns(),
                                   .nothing = "nothing is reserved"};
  return ListCommand(list, &v1::ListReservationsResponse::reservations).run(text, invocation);
}

}  // namespace gpu_platform::cli
