#include "api/convert/reservation.h"

#include <optional>

#include <fmt/format.h>

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
  for (const std::string& list : request.nodes()) {
    const auto names = base::expand_names(list);
    if (!names) {
      return base::invalid("nodes", fmt::format("nodes: '{}' is no list of names such as dgx-[1-4]",
                                                list.substr(0, 64)));
    }
    command.nodes.insert(command.nodes.end(), names->begin(), names->end());
  }
  if (request.has_gpus_per_node()) command.gpus_per_node = request.gpus_per_node();
  command.gpus = request.gpus();
  TRY_ASSIGN(command.gpu_type, to_gpu_type(request.gpu_type(), nodes));
  command.ignore_running = request.ignore_running();
  return command;
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
}

}  // namespace gpu_platform::api
