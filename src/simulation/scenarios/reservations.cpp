#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  return {user, uid, uid == 0};
}

base::Status check_same(std::string_view what, const std::string& expected,
                        const std::string& found) {
  if (expected == found) return {};
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    fmt::format("{}: expected {}, found {}", what, expected, found));
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
  TRY(set_instant(statement, "begin", made.begin));
  TRY(set_instant(statement, "end", made.end));
  TRY(set_duration(statement, "for", made.duration));
  return command({caller_by(statement), std::move(made)});
}

base::Status ScenarioRunner::unreserve(const Statement& statement) {
  return command({caller_by(statement), model::CancelReservation{statement.arguments[0]}});
}

// With gpus=0: it is not there.
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
  if (const std::string* expected = option(statement, "let_finish")) {
    TRY(check_same("let finish", *expected, names_of(finishing)));
  }
  return {};
}

}  // namespace gpu_platform::simulation
