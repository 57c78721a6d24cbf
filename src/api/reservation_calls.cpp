#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/calls.h"
#include "api/convert/reservation.h"
#include "api/list_page.h"
#include "model/access.h"
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

base::Result<v1::ListReservationsResponse> Calls::reservations(
    const v1::ListReservationsRequest& request) const {
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
  TRY(cut_to_page(request, *out.mutable_reservations(), out,
                  [](const v1::Reservation& reservation) { return reservation.name(); }));
  return out;
}

base::Result<v1::Reservation> Calls::reservation(const std::string& name) const {
  return find(*core_.snapshots.snapshot(), name);
}

// The users must exist.
template <class Command>
void Calls::reserve(Command command, const std::vector<std::string>& users, const Peer& peer,
                    Resume resume, Reserved done) const {
  auto send_it = [this, caller = peer.caller, command = std::move(command), resume,
                  done = std::move(done)](base::Status checked) {
    if (!checked) return done(std::unexpected(std::move(checked).error()));
    send({caller, command}, resume,
         [this, name = command.name, done](base::Result<model::CommandReply> reply) {
           if (!reply) return done(std::unexpected(std::move(reply).error()));
           done(reservation(name));
         });
  };
  // Others are refused, and nothing is looked up for them.
  if (!model::may_touch_site(peer.caller)) return send_it({});
  NamedUsers named{.asker = peer.caller.uid};
  for (const std::string& user : users) named.named.push_back({"users", user});
  check_users(std::move(named), resume, std::move(send_it));
}

void Calls::create_reservation(const v1::CreateReservationRequest& request, const Peer& peer,
                               Resume resume, Reserved done) const {
  auto command = to_model(request, core_.snapshots.snapshot()->nodes);
  if (!command) return done(std::unexpected(std::move(command).error()));
  const std::vector<std::string> users = command->users;
  reserve(*std::move(command), users, peer, std::move(resume), std::move(done));
}

void Calls::update_reservation(const v1::UpdateReservationRequest& request, const Peer& peer,
                               Resume resume, Reserved done) const {
  auto command = to_model(request, core_.snapshots.snapshot()->nodes);
  if (!command) return done(std::unexpected(std::move(command).error()));
  const auto users = command->users.value_or(std::vector<std::string>());
  reserve(*std::move(command), users, peer, std::move(resume), std::move(done));
}

// One after the other: there are few of them, and the directory remembers its answers.
void Calls::check_users(NamedUsers users, Resume resume,
                        std::function<void(base::Status)> done) const {
  if (users.next == users.named.size()) return done({});
  const std::uint32_t asker = users.asker;
  const std::string user = users.named[users.next].name;
  core_.users.find(
      user, asker,
      [this, users = std::move(users), resume = std::move(resume),
       done = std::move(done)](base::Result<host::User> found) mutable {
        const Resume on = resume;
        on([this, users = std::move(users), resume = std::move(resume), done = std::move(done),
            found = std::move(found)]() mutable {
          if (found) {
            ++users.next;
            return check_users(std::move(users), std::move(resume), std::move(done));
          }
          const auto& [field, name] = users.named[users.next];
          if (found.error().code != base::ErrorCode::kNotFound) {
            return done(base::fail(found.error().code,
                                   fmt::format("{}: {}", field, found.error().message), field));
          }
          done(base::invalid(
              field, fmt::format("{}: there is no user '{}' on this machine", field, name)));
        });
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
