#include "shims/commands/scontrol_site.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "base/percent.h"
#include "cli/words/input.h"
#include "client/request_text.h"
#include "gpu_platform/v1/reservations.pb.h"
#include "shims/steps/step_variables.h"
#include "shims/text/columns.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/node_view.h"

namespace gpu_platform::shims {

namespace {

using ChangeWords = std::span<const std::string>;
// KEY=VALUE words by their key in small letters, in their order.
using Pairs = std::vector<std::pair<std::string, std::string>>;

base::Result<Pairs> pairs_of(ChangeWords words) {
  Pairs pairs;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos)
      return base::invalid(word, "is not understood: write KEY=VALUE");
    pairs.emplace_back(plain_name(word.substr(0, equals)), word.substr(equals + 1));
  }
  return pairs;
}

std::string value_of_pair(const Pairs& pairs, std::string_view key) {
  const auto found = std::ranges::find(pairs, key, [](const auto& pair) { return pair.first; });
  return found == pairs.end() ? std::string() : found->second;
}

// What the daemon is asked for in place of a node's state.
struct NodeState {
  std::string_view name;
  std::string_view path;
};
constexpr NodeState kNodeStates[] = {{"drain", "/v1/gpus/drain"},   {"draining", "/v1/gpus/drain"},
                                     {"down", "/v1/gpus/offline"},  {"fail", "/v1/gpus/offline"},
                                     {"resume", "/v1/gpus/online"}, {"idle", "/v1/gpus/online"},
                                     {"undrain", "/v1/gpus/online"}};

base::Result<std::vector<std::string>> names_of_nodes(client::Client& client,
                                                      const std::string& list) {
  if (lower_case(list) != "all") return host_names(list);
  const auto nodes = list_nodes(client);
  if (!nodes) return base::invalid({}, nodes.error().message);
  std::vector<std::string> names;
  for (const NodeView& node : *nodes) names.push_back(node.name);
  return names;
}

int update_nodes(CommandCall& call, const Pairs& pairs) {
  for (const auto& [key, value] : pairs) {
    if (key != "nodename" && key != "state" && key != "reason") {
      return call.fail(
          fmt::format("Update of this parameter is not supported: {}={}; State and "
                      "Reason of a node can be changed",
                      key, value));
    }
  }
  const std::string state = lower_case(value_of_pair(pairs, "state"));
  const auto known = std::ranges::find(kNodeStates, std::string_view(state), &NodeState::name);
  if (known == std::end(kNodeStates)) {
    return call.fail(fmt::format(
        "Invalid node state specified: '{}'; use drain, down (jobs must have ended) or resume",
        state));
  }
  const std::string reason = value_of_pair(pairs, "reason");
  if (reason.empty() && !known->path.ends_with("online"))
    return call.fail("You must specify a reason when DOWNING or DRAINING a node: Reason=TEXT");
  auto client = call.client();
  if (!client) return 1;
  const auto names = names_of_nodes(*client, value_of_pair(pairs, "nodename"));
  if (!names) return call.fail(names.error());
  int code = 0;
  for (const std::string& name : *names) {
    v1::ChangeGpusRequest request;
    request.set_node(name);
    request.set_reason(reason);
    const auto done = client->post(std::string(known->path), client::request_text(request));
    if (done) continue;
    const bool is_missing = done.error().code == base::ErrorCode::kNotFound;
    code =
        call.fail(fmt::format("slurm_update error: node {}: {}", name,
                              is_missing ? "Invalid node name specified" : done.error().message));
  }
  return code;
}

// Requests to make and to change a reservation have the same fields: `Request` is either.
template <class Request>
base::Status put_duration(const std::string& value, Request& request) {
  const auto duration = parse_time_limit(value);
  if (!duration) return base::invalid("Duration", duration.error().message);
  if (!duration->has_value())
    return base::invalid("Duration", "a reservation ends: write a time, or use EndTime");
  request.set_duration_seconds(static_cast<double>(base::whole_milliseconds(**duration)) / 1000);
  return {};
}

// Flags of reservations that repeat themselves, and the daemon's word for each.
using RepeatFlag = std::pair<std::string_view, v1::ReservationRepeat>;
constexpr RepeatFlag kRepeatFlags[] = {{"hourly", v1::RESERVATION_REPEAT_HOURLY},
                                       {"daily", v1::RESERVATION_REPEAT_DAILY},
                                       {"weekday", v1::RESERVATION_REPEAT_WEEKDAYS},
                                       {"weekend", v1::RESERVATION_REPEAT_WEEKENDS},
                                       {"weekly", v1::RESERVATION_REPEAT_WEEKLY}};

template <class Request>
base::Status put_flags(const std::string& value, Request& request) {
  for (const std::string& flag : comma_separated(value)) {
    const std::string plain = lower_case(flag);
    const auto* repeat =
        std::ranges::find(kRepeatFlags, std::string_view(plain), &RepeatFlag::first);
    if (repeat != std::end(kRepeatFlags)) {
      request.set_repeat(repeat->second);
    } else if (plain == "maint") {
      request.set_maintenance(true);
    } else if (plain == "ignore_jobs") {
      request.set_ignore_running(true);
      request.set_force(true);
    } else if (plain != "spec_nodes" && plain != "any_nodes") {
      return base::invalid("Flags", fmt::format("'{}' is not supported: MAINT, IGNORE_JOBS, "
                                                "SPEC_NODES, ANY_NODES, HOURLY, DAILY, WEEKDAY, "
                                                "WEEKEND and WEEKLY are",
                                                flag));
    }
  }
  return {};
}

// "gres/gpu=4", "gres/gpu:h100=4"
template <class Request>
base::Status put_tres(const std::string& value, Request& request) {
  std::string_view rest = value;
  const bool is_gpu = rest.starts_with("gres/gpu") || rest.starts_with("gpu");
  const std::size_t equals = rest.rfind('=');
  const auto count = equals == std::string_view::npos ? parse_number("", 1)
                                                      : parse_number(rest.substr(equals + 1), 1);
  if (!is_gpu || !count || rest.find(',') != std::string_view::npos)
    return base::invalid("TRES", fmt::format("'{}' is not gres/gpu=N or gres/gpu:TYPE=N", value));
  const std::string_view name = rest.substr(0, equals);
  if (const std::size_t colon = name.find(':'); colon != std::string_view::npos)
    request.set_gpu_type(std::string(name.substr(colon + 1)));
  request.set_gpus(*count);
  return {};
}

using Names = google::protobuf::RepeatedPtrField<std::string>;

void assign(const std::vector<std::string>& from, Names& names) {
  names.Assign(from.begin(), from.end());
}

base::Status put_names(const char* key, const std::string& value, Names& names) {
  if (value.find('-') == 0 || value.find('+') == 0)
    return base::invalid(key, "names are given, not added or taken away");
  assign(comma_separated(value), names);
  return {};
}

template <class Request>
base::Status put_pair(const std::string& key, const std::string& value, base::Instant now,
                      Request& request) {
  if (key == "reservation" || key == "reservationname") {
    request.set_name(value);
    return {};
  }
  if (key == "starttime") {
    return lower_case(value) == "now"
               ? base::Status()
               : put_coming_time("begin", value, now, *request.mutable_begin());
  }
  if (key == "endtime") return put_coming_time("end", value, now, *request.mutable_end());
  if (key == "duration") return put_duration(value, request);
  if (key == "flags") return put_flags(value, request);
  if (key == "tres") return put_tres(value, request);
  if (key == "users") return put_names("users", value, *request.mutable_users());
  if (key == "accounts") return put_names("teams", value, *request.mutable_teams());
  if (key == "nodes") {
    if (lower_case(value) != "all") assign(host_names(value), *request.mutable_nodes());
    return {};
  }
  return base::invalid(key,
                       "is not supported: ReservationName, StartTime, EndTime, Duration, Nodes, "
                       "TRES=gres/gpu=N, Users, Accounts and Flags are");
}

// The days of WEEKDAY and WEEKEND are those of the caller's time zone, as it is now.
std::int32_t utc_offset_seconds(base::Instant now) {
  const std::time_t seconds = now.unix_ns() / 1'000'000'000;
  std::tm parts = {};
  return ::localtime_r(&seconds, &parts) != nullptr ? static_cast<std::int32_t>(parts.tm_gmtoff)
                                                    : 0;
}

template <class Request>
base::Result<Request> reservation_of(const Pairs& pairs, base::Instant now) {
  Request request;
  for (const auto& [key, value] : pairs) TRY(put_pair(key, value, now, request));
  if (request.repeat() == v1::RESERVATION_REPEAT_WEEKDAYS ||
      request.repeat() == v1::RESERVATION_REPEAT_WEEKENDS)
    request.set_utc_offset_seconds(utc_offset_seconds(now));
  return request;
}

base::Status put_all_nodes(client::Client& client, const Pairs& pairs, Names& nodes) {
  if (lower_case(value_of_pair(pairs, "nodes")) != "all") return {};
  TRY_ASSIGN(const std::vector<std::string> names, names_of_nodes(client, "all"));
  assign(names, nodes);
  return {};
}

// "update ReservationName=NAME KEY=VALUE…", or the word skip in place of the pairs.
int update_reservation(CommandCall& call, ChangeWords words) {
  std::vector<std::string> rest(words.begin(), words.end());
  const bool skips =
      std::erase_if(rest, [](const std::string& word) { return lower_case(word) == "skip"; }) > 0;
  const auto pairs = pairs_of(rest);
  if (!pairs) return call.fail(pairs.error());
  auto request = reservation_of<v1::UpdateReservationRequest>(*pairs, call.around().now());
  if (!request) return call.fail(request.error());
  request->set_skip(skips);
  auto client = call.client();
  if (!client) return 1;
  if (const auto put = put_all_nodes(*client, *pairs, *request->mutable_nodes()); !put)
    return call.fail(put.error());
  const auto done =
      client->post("/v1/reservations/" + base::percent_encoded(request->name()) + "/update",
                   client::request_text(*request));
  if (!done)
    return call.fail(fmt::format("Error updating the reservation: {}", done.error().message));
  call.console().out("Reservation updated.\n");
  return call.console().out_failed() ? 1 : 0;
}

int create_reservation(CommandCall& call, ChangeWords words) {
  const auto pairs = pairs_of(words);
  if (!pairs) return call.fail(pairs.error());
  const base::Instant now = call.around().now();
  auto request = reservation_of<v1::CreateReservationRequest>(*pairs, now);
  if (!request) return call.fail(request.error());
  // Slurm wants a user for maintenance too, and people write root: here it is for none.
  if (request->maintenance() && value_of_pair(*pairs, "users") == "root") request->clear_users();
  const bool is_named = std::ranges::any_of(*pairs, [](const auto& pair) {
    return pair.first == "reservation" || pair.first == "reservationname";
  });
  if (!is_named) {
    // Slurm names a reservation by its users.
    std::string holder = value_of_pair(*pairs, "users");
    if (holder.empty()) holder = value_of_pair(*pairs, "accounts");
    if (holder.empty()) holder = "reservation";
    request->set_name(fmt::format("{}_{}", holder.substr(0, holder.find(',')),
                                  now.unix_ns() / 1'000'000'000 % 1'000'000));
  }
  auto client = call.client();
  if (!client) return 1;
  if (const auto put = put_all_nodes(*client, *pairs, *request->mutable_nodes()); !put)
    return call.fail(put.error());
  const auto made = client->post("/v1/reservations", client::request_text(*request));
  if (!made) {
    return call.fail(fmt::format("Error creating the reservation: {}", made.error().message));
  }
  call.console().out(fmt::format("Reservation created: {}\n", request->name()));
  return call.console().out_failed() ? 1 : 0;
}

int delete_reservation(CommandCall& call, ChangeWords words) {
  std::string name;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    name = equals == std::string::npos ? word : word.substr(equals + 1);
  }
  if (name.empty()) return call.fail("too few arguments for delete keyword: Reservation=NAME");
  auto client = call.client();
  if (!client) return 1;
  const auto done = client->remove("/v1/reservations/" + base::percent_encoded(name));
  if (done) return 0;
  const bool is_missing = done.error().code == base::ErrorCode::kNotFound;
  return call.fail(
      fmt::format("delete_reservation reservation={}: {}", name,
                  is_missing ? "Requested reservation is invalid" : done.error().message));
}

// The second word's key, of "create reservation" the word itself.
std::string entity_of(ChangeWords words) {
  if (words.size() < 2) return {};
  return plain_name(std::string_view(words[1]).substr(0, words[1].find('=')));
}

bool is_reservation(std::string_view entity) {
  return entity == "reservation" || entity == "reservationname" || entity == "res";
}

bool names_one_of(ChangeWords words, std::initializer_list<std::string_view> keys) {
  return std::ranges::any_of(words.subspan(1), [&](const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string key = plain_name(std::string_view(word).substr(0, equals));
    return std::ranges::find(keys, key) != keys.end();
  });
}

}  // namespace

bool changes_site(ChangeWords words) {
  const std::string& command = words.front();
  if (command == "create" || command == "delete") return true;
  return command == "update" &&
         names_one_of(words, {"nodename", "reservation", "reservationname", "partitionname"}) &&
         !names_one_of(words, {"jobid", "job"});
}

int change_site(CommandCall& call, ChangeWords words) {
  const std::string& command = words.front();
  const std::string entity = entity_of(words);
  const bool is_word = words.size() > 1 && words[1].find('=') == std::string::npos;
  if (command == "update") {
    if (names_one_of(words, {"nodename"})) {
      const auto pairs = pairs_of(words.subspan(1));
      return pairs ? update_nodes(call, *pairs) : call.fail(pairs.error());
    }
    if (names_one_of(words, {"partitionname"}))
      return call.fail(
          "partitions are made and changed only in the configuration (slurm.partitions)");
    return update_reservation(call, words.subspan(is_reservation(entity) && is_word ? 2 : 1));
  }
  if (is_reservation(entity)) {
    if (command == "create") return create_reservation(call, words.subspan(is_word ? 2 : 1));
    return delete_reservation(call, words.subspan(is_word ? 2 : 1));
  }
  if (command == "create" && names_one_of(words, {"starttime", "duration", "endtime"}))
    return create_reservation(call, words.subspan(1));
  return call.fail(
      fmt::format("'{} {}' is not supported: reservations are created, updated and deleted "
                  "here; partitions are in the configuration (slurm.partitions)",
                  command, entity));
}

}  // namespace gpu_platform::shims
