#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/calls.h"
#include "api/convert/reservation.h"
#include "os/clock.h"

// The calls about reservations.

namespace gpu_platform::api {

namespace {

base::Result<v1::Reservation> find(const controller::Snapshot& snapshot, const std::string& name) {
  const model::Reservation* reservation =
      snapshot.reservations == nullptr ? nullptr : snapshot.reservations->find(name);
  if (reservation == nullptr) {
    return base::fail(base::ErrorCode::kNotFound,
                      fmt::format("there is no reservation {} that has not ended", name), "name");
  }
  v1::Reservation out;
  to_proto(*reservation, snapshot.nodes, os::wall_now(), out);
  return out;
}

}  // namespace

v1::ListReservationsResponse Calls::reservations() const {
  const auto snapshot = core_.snapshots.snapshot();
  v1::ListReservationsResponse out;
  if (snapshot->reservations == nullptr) return out;
  std::vector<const model::Reservation*> reservations;
  for (const auto& [name, reservation] : snapshot->reservations->all())
    reservations.push_back(&reservation);
  std::ranges::stable_sort(reservations, {}, &model::Reservation::begin);
  const base::Instant now = os::wall_now();
  for (const model::Reservation* reservation : reservations) {
    to_proto(*reservation, snapshot->nodes, now, *out.add_reservations());
  }
  return out;
}

base::Result<v1::Reservation> Calls::reservation(const std::string& name) const {
  return find(*core_.snapshots.snapshot(), name);
}

void Calls::create_reservation(const v1::CreateReservationRequest& request, const Peer& peer,
                               Resume resume, Reserved done) const {
  auto command = to_model(request, core_.snapshots.snapshot()->nodes);
  if (!command) return done(std::unexpected(std::move(command).error()));
  send({peer.caller, *std::move(command)}, std::move(resume),
       [this, name = request.name(),
        done = std::move(done)](base::Result<model::CommandReply> reply) {
         if (!reply) return done(std::unexpected(std::move(reply).error()));
         done(reservation(name));
       });
}

void Calls::cancel_reservation(const std::string& name, const Peer& peer, Resume resume,
                               Reserved done) const {
  auto before = reservation(name);
  if (!before) return done(std::unexpected(std::move(before).error()));
  send({peer.caller, model::CancelReservation{name}}, std::move(resume),
       [before = *std::move(before),
        done = std::move(done)](base::Result<model::CommandReply> reply) {
         if (!reply) return done(std::unexpected(std::move(reply).error()));
         done(before);
       });
}

}  // namespace gpu_platform::api
