#include "api/reservation_calls.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/accounts.h"
#include "api/call_context.h"
#include "api/convert/reservation.h"
#include "api/list_page.h"
#include "model/access.h"
#include "os/clock.h"

namespace gpu_platform::api {

namespace {

base::Result<v1::Reservation> find_reservation(const controller::Snapshot& snapshot,
                                               const std::string& name) {
  const model::Reservation* reservation =
      snapshot.reservations == nullptr ? nullptr : snapshot.reservations->find(name);
  if (reservation == nullptr) {
    return base::fail(base::ErrorCode::kNotFound,
                      fmt::format("there is no reservation {} that has not ended", name), "name");
  }
  v1::Reservation out;
  api::to_proto(*reservation, snapshot.nodes, os::wall_now(), out);
  return out;
}

// Sends the command, which names these users, if they exist.
template <class Command>
void reserve(const CallContext& context, Command command, const std::vector<std::string>& users,
             const Peer& peer, Resume resume, Done<v1::Reservation> done) {
  auto send_it = [&context, caller = peer.caller, command = std::move(command), resume,
                  done = std::move(done)](base::Status checked) {
    if (!checked) return done(std::unexpected(std::move(checked).error()));
    context.send({caller, command}, resume,
                 [&context, name = command.name, done](base::Result<model::CommandReply> reply) {
                   if (!reply) return done(std::unexpected(std::move(reply).error()));
                   done(find_reservation(*context.core.snapshots.snapshot(), name));
                 });
  };
  // Others are refused, and nothing is looked up for them.
  if (!model::may_touch_site(peer.caller)) return send_it({});
  std::vector<NamedUser> named;
  named.reserve(users.size());
  for (const std::string& user : users) named.push_back({"users", user});
  check_users(context, std::move(named), peer.caller.uid, std::move(resume), std::move(send_it));
}

}  // namespace

base::Result<v1::ListReservationsResponse> ReservationCalls::list(
    const v1::ListReservationsRequest& request) const {
  const auto snapshot = context_.core.snapshots.snapshot();
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
  TRY(cut_to_page(request, *out.mutable_reservations(), out,
                  [](const v1::Reservation& reservation) { return reservation.name(); }));
  return out;
}

base::Result<v1::Reservation> ReservationCalls::get(
    const v1::GetReservationRequest& request) const {
  return find_reservation(*context_.core.snapshots.snapshot(), request.name());
}

void ReservationCalls::create(const v1::CreateReservationRequest& request, const Peer& peer,
                              Resume resume, Done<v1::Reservation> done) const {
  auto command = to_model(request, context_.core.snapshots.snapshot()->nodes);
  if (!command) return done(std::unexpected(std::move(command).error()));
  const std::vector<std::string> users = command->users;
  reserve(context_, *std::move(command), users, peer, std::move(resume), std::move(done));
}

void ReservationCalls::update(const v1::UpdateReservationRequest& request, const Peer& peer,
                              Resume resume, Done<v1::Reservation> done) const {
  auto command = to_model(request, context_.core.snapshots.snapshot()->nodes);
  if (!command) return done(std::unexpected(std::move(command).error()));
  const auto users = command->users.value_or(std::vector<std::string>());
  reserve(context_, *std::move(command), users, peer, std::move(resume), std::move(done));
}

void ReservationCalls::cancel(const v1::CancelReservationRequest& request, const Peer& peer,
                              Resume resume, Done<v1::Reservation> done) const {
  auto before = find_reservation(*context_.core.snapshots.snapshot(), request.name());
  if (!before) return done(std::unexpected(std::move(before).error()));
  context_.send({peer.caller, model::CancelReservation{request.name()}}, std::move(resume),
                [before = *std::move(before),
                 done = std::move(done)](base::Result<model::CommandReply> reply) {
                  if (!reply) return done(std::unexpected(std::move(reply).error()));
                  done(before);
                });
}

}  // namespace gpu_platform::api
