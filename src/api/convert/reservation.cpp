#include "api/convert/reservation.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "api/convert/enums.h"
#include "api/convert/job_change.h"
#include "base/name_list.h"
#include "model/gpu_catalogue.h"

namespace gpu_platform::api {

namespace {

base::Result<std::string> to_gpu_type(const std::string& wanted, const Nodes& nodes) {
  if (wanted.empty()) return std::string();
  if (auto type = model::canonical_gpu_type(wanted)) return *std::move(type);
  std::optional<std::string> found;
  nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (const model::Gpu& gpu : node.gpus) {
      if (!found && model::gpu_type_matches(wanted, gpu.info.type)) found = gpu.info.type;
    }
  });
  if (found) return *std::move(found);
  return base::invalid("gpu_type", fmt::format("gpu_type: no GPU type '{}' is known to the "
                                               "catalogue or to this cluster",
                                               wanted.substr(0, 64)));
}

template <class Names>
base::Result<std::vector<std::string>> expanded(const Names& lists) {
  std::vector<std::string> nodes;
  for (const std::string& list : lists) {
    const auto names = base::expand_names(list);
    if (!names) {
      return base::invalid(
          "nodes",
          fmt::format("nodes: '{}' is not a list of names such as dgx-[1-4]", list.substr(0, 64)));
    }
    nodes.insert(nodes.end(), names->begin(), names->end());
  }
  return nodes;
}

// Those that are free, and those that a job holds or leaves.
std::uint32_t gpus_in_service(const model::Reservation& reservation, const Nodes& nodes) {
  std::uint32_t count = 0;
  for (const model::ReservationPart& part : reservation.parts) {
    const model::Node* node = nodes.find(part.node.value);
    if (node == nullptr || node->state != model::NodeState::kUp) continue;
    for (std::size_t i = 0; i < std::min<std::size_t>(node->gpus.size(), 64); ++i) {
      if ((part.gpus >> i & 1) != 0 && model::is_in_service(node->gpus[i])) ++count;
    }
  }
  return count;
}

void put_next_begins(const model::Reservation& reservation, v1::Reservation& out) {
  constexpr int kShown = 3;
  auto next = model::occurrence_after(reservation, reservation.end);
  for (int left = kShown; next && left > 0; --left) {
    to_proto(next->begin, *out.add_next_begins());
    next = model::occurrence_after(reservation, next->end);
  }
}

}  // namespace

base::Result<model::MakeReservation> to_model(const v1::CreateReservationRequest& request,
                                              const Nodes& nodes) {
  model::MakeReservation command;
  command.name = request.name();
  if (request.has_begin()) command.begin = to_model(request.begin());
  if (request.has_end()) command.end = to_model(request.end());
  if (request.has_duration_seconds()) command.duration = to_duration(request.duration_seconds());
  command.maintenance = request.maintenance();
  command.teams.assign(request.teams().begin(), request.teams().end());
  command.users.assign(request.users().begin(), request.users().end());
  TRY_ASSIGN(command.nodes, expanded(request.nodes()));
  if (request.has_gpus_per_node()) command.gpus_per_node = request.gpus_per_node();
  command.gpus = request.gpus();
  TRY_ASSIGN(command.gpu_type, to_gpu_type(request.gpu_type(), nodes));
  command.ignore_running = request.ignore_running();
  command.force = request.force();
  if (request.repeat() != v1::RESERVATION_REPEAT_UNSPECIFIED) {
    command.repeat = to_model(request.repeat());
  }
  if (request.has_until()) command.until = to_model(request.until());
  if (request.has_count()) command.count = request.count();
  command.utc_offset = base::seconds(request.utc_offset_seconds());
  return command;
}

base::Result<model::ChangeReservation> to_model(const v1::UpdateReservationRequest& request,
                                                const Nodes& nodes) {
  model::ChangeReservation change;
  change.name = request.name();
  change.skip = request.skip();
  if (request.has_begin()) change.begin = to_model(request.begin());
  if (request.has_end()) change.end = to_model(request.end());
  if (request.has_duration_seconds()) change.duration = to_duration(request.duration_seconds());
  if (request.has_maintenance()) change.maintenance = request.maintenance();
  if (!request.teams().empty())
    change.teams.emplace(request.teams().begin(), request.teams().end());
  if (!request.users().empty())
    change.users.emplace(request.users().begin(), request.users().end());
  TRY_ASSIGN(change.nodes, expanded(request.nodes()));
  if (request.has_gpus_per_node()) change.gpus_per_node = request.gpus_per_node();
  change.gpus = request.gpus();
  TRY_ASSIGN(change.gpu_type, to_gpu_type(request.gpu_type(), nodes));
  change.ignore_running = request.ignore_running();
  change.force = request.force();
  if (request.repeat() != v1::RESERVATION_REPEAT_UNSPECIFIED) {
    change.repeat = to_model(request.repeat());
  }
  if (request.has_until()) change.until = to_model(request.until());
  if (request.has_count()) change.count = request.count();
  if (request.has_utc_offset_seconds()) {
    change.utc_offset = base::seconds(request.utc_offset_seconds());
  }
  return change;
}

void to_proto(const model::Reservation& reservation, const Nodes& nodes, base::Instant now,
              v1::Reservation& out) {
  out.set_name(reservation.name);
  to_proto(reservation.begin, *out.mutable_begin());
  to_proto(reservation.end, *out.mutable_end());
  out.set_active(reservation.begin <= now && now < reservation.end);
  out.set_maintenance(reservation.maintenance);
  for (const std::string& team : reservation.teams) out.add_teams(team);
  for (const std::string& user : reservation.users) out.add_users(user);
  for (const model::ReservationPart& part : reservation.parts) {
    v1::ReservedNode& node = *out.add_nodes();
    const model::Node* found = nodes.find(part.node.value);
    node.set_node(found == nullptr ? fmt::format("node {}", part.node.value) : found->name);
    for (std::uint32_t i = 0; i < 64; ++i) {
      if ((part.gpus >> i & 1) != 0) node.add_gpus(i);
    }
    node.set_whole_node(part.whole_node);
  }
  out.set_gpu_count(reservation.gpu_count());
  for (const model::AttemptId id : reservation.let_finish) {
    out.add_let_finish(std::to_string(id.job.value));
  }
  out.set_made_by(reservation.made_by);
  to_proto(reservation.made_at, *out.mutable_made_at());
  out.set_repeat(to_proto(reservation.repeat));
  if (reservation.last_begin.is_set()) to_proto(reservation.last_begin, *out.mutable_until());
  out.set_utc_offset_seconds(
      static_cast<std::int32_t>(base::whole_milliseconds(reservation.utc_offset) / 1000));
  put_next_begins(reservation, out);
  out.set_gpus_in_service(gpus_in_service(reservation, nodes));
}

}  // namespace gpu_platform::api
