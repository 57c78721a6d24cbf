#pragma once

#include "api/changing_call.h"
#include "gpu_platform/v1/reservations.pb.h"

namespace gpu_platform::api {

struct CallContext;

// The calls of ReservationService. Safe from any thread.
class ReservationCalls {
 public:
  explicit ReservationCalls(const CallContext& context) : context_(context) {}

  base::Result<v1::ListReservationsResponse> list(const v1::ListReservationsRequest& request) const;
  base::Result<v1::Reservation> get(const v1::GetReservationRequest& request) const;

  void create(const v1::CreateReservationRequest& request, const Peer& peer, Resume resume,
              Done<v1::Reservation> done) const;
  void update(const v1::UpdateReservationRequest& request, const Peer& peer, Resume resume,
              Done<v1::Reservation> done) const;
  void cancel(const v1::CancelReservationRequest& request, const Peer& peer, Resume resume,
              Done<v1::Reservation> done) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
