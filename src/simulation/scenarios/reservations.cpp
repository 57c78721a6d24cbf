#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/utc.h"
#include "model/gpu_catalogue.h"
#include "simulation/scenarios/runner.h"

// Statements about reservations.

namespace gpu_platform::simulation {

namespace {

std::vector<std::string> list_of(const Statement& statement, std::string_view name) {
  std::vector<std::string> words;
  const std::string* text = option(statement, name);
  if (text == nullptr) return words;
  for (std::size_t begin = 0; begin <= text->size();) {
    const std::size_t end = std::min(text->find(',', begin), text->size());
    words.push_back(text->substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

model::Caller caller_by(const Statement& statement) {
  const std::string* by = option(statement, "by");
  const std::string user = by == nullptr ? "root" : *by;
  const std::uint32_t uid = uid_of_user(user);
  return model::caller_with_uid(user, uid);
}

base::Status check_same(std::string_view what, const std::string& expected,
                        const std::string& found) {
  if (expected == found) return {};
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    fmt::format("{}: expected {}, found {}", what, expected, found));
}

}  // namespace

namespace {

base::Status set_repeat(const Statement& statement, model::Repeat& repeat) {
  const std::string* text = option(statement, "repeat");
  if (text == nullptr) return {};
  const auto found = model::parse_repeat(*text);
  if (!found) return base::invalid({}, fmt::format("repeat: '{}' is none", *text));
  repeat = *found;
  return {};
}

}  // namespace

base::Status ScenarioRunner::reserve(const Statement& statement) {
  model::MakeReservation made;
  made.name = statement.arguments[0];
  made.nodes = list_of(statement, "nodes");
  made.teams = list_of(statement, "teams");
  made.users = list_of(statement, "users");
  if (option(statement, "gpus_per_node") != nullptr) {
    TRY(set_count(statement, "gpus_per_node", 0, 64, made.gpus_per_node.emplace()));
  }
  TRY(set_count(statement, "gpus", 0, 65535, made.gpus));
  if (const std::string* type = option(statement, "type")) {
    made.gpu_type = model::canonical_gpu_type(*type).value_or(*type);
  }
  TRY(set_bool(statement, "maintenance", made.maintenance));
  TRY(set_bool(statement, "ignore_running", made.ignore_running));
  TRY(set_bool(statement, "force", made.force));
  TRY(set_instant(statement, "begin", made.begin));
  TRY(set_instant(statement, "end", made.end));
  TRY(set_duration(statement, "for", made.duration));
  TRY(set_repeat(statement, made.repeat));
  TRY(set_instant(statement, "until", made.until));
  TRY(set_count(statement, "count", 0, UINT32_MAX, made.count));
  TRY(set_duration(statement, "utc_offset", made.utc_offset));
  return command({caller_by(statement), std::move(made)});
}

base::Status ScenarioRunner::change_reservation(const Statement& statement) {
  model::ChangeReservation change;
  change.name = statement.arguments[0];
  const auto has = [&](std::string_view name) { return option(statement, name) != nullptr; };
  change.nodes = list_of(statement, "nodes");
  if (has("teams")) change.teams = list_of(statement, "teams");
  if (has("users")) change.users = list_of(statement, "users");
  if (has("gpus_per_node")) {
    TRY(set_count(statement, "gpus_per_node", 0, 64, change.gpus_per_node.emplace()));
  }
  TRY(set_count(statement, "gpus", 0, 65535, change.gpus));
  if (const std::string* type = option(statement, "type")) {
    change.gpu_type = model::canonical_gpu_type(*type).value_or(*type);
  }
  if (has("maintenance")) TRY(set_bool(statement, "maintenance", change.maintenance.emplace()));
  TRY(set_bool(statement, "ignore_running", change.ignore_running));
  TRY(set_bool(statement, "force", change.force));
  TRY(set_bool(statement, "skip", change.skip));
  if (has("begin")) TRY(set_instant(statement, "begin", change.begin.emplace()));
  if (has("end")) TRY(set_instant(statement, "end", change.end.emplace()));
  if (has("for")) TRY(set_duration(statement, "for", change.duration.emplace()));
  if (has("repeat")) TRY(set_repeat(statement, change.repeat.emplace()));
  if (has("until")) TRY(set_instant(statement, "until", change.until.emplace()));
  if (has("count")) TRY(set_count(statement, "count", 0, UINT32_MAX, change.count.emplace()));
  if (has("utc_offset")) TRY(set_duration(statement, "utc_offset", change.utc_offset.emplace()));
  return command({caller_by(statement), std::move(change)});
}

base::Status ScenarioRunner::unreserve(const Statement& statement) {
  return command({caller_by(statement), model::CancelReservation{statement.arguments[0]}});
}

// gpus=0 expects that it is not there.
base::Status ScenarioRunner::expect_reserved(const Statement& statement) {
  const controller::State& state = controller_->core().state();
  const model::Reservation* reservation = state.books->reservations.find(statement.arguments[0]);
  std::uint64_t gpus = reservation == nullptr ? 0 : reservation->gpu_count();
  const std::string found = fmt::format("{}", gpus);
  TRY(set_count(statement, "gpus", 0, 65535, gpus));
  TRY(check_same("GPUs", fmt::format("{}", gpus), found));
  std::vector<std::string> nodes;
  std::vector<model::JobId> finishing;
  if (reservation != nullptr) {
    for (const model::ReservationPart& part : reservation->parts) {
      nodes.push_back(state.nodes.find(part.node.value)->name);
    }
    for (const model::AttemptId id : reservation->let_finish) finishing.push_back(id.job);
  }
  if (const std::string* expected = option(statement, "nodes")) {
    TRY(check_same("nodes", *expected, fmt::format("{}", fmt::join(nodes, ","))));
  }
  for (const auto& [name, found_at] :
       {std::pair("begin", reservation == nullptr ? base::Instant() : reservation->begin),
        {"end", reservation == nullptr ? base::Instant() : reservation->end}}) {
    base::Instant expected = found_at;
    TRY(set_instant(statement, name, expected));
    TRY(check_same(name, base::utc(expected), base::utc(found_at)));
  }
  if (const std::string* expected = option(statement, "let_finish")) {
    TRY(check_same("let finish", *expected, names_of(finishing)));
  }
  return {};
}

}  // namespace gpu_platform::simulation
