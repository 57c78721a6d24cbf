#pragma once

#include "api/convert/job.h"
#include "base/result.h"
#include "base/units.h"
#include "gpu_platform/v1/reservations.pb.h"
#include "model/command.h"
#include "model/reservation.h"

// Reservations between their messages and the model.

namespace gpu_platform::api {

// `nodes`: the nodes that a GPU type may be of; errors name the field.
base::Result<model::MakeReservation> to_model(const v1::CreateReservationRequest& request,
                                              const Nodes& nodes);

base::Result<model::ChangeReservation> to_model(const v1::UpdateReservationRequest& request,
                                                const Nodes& nodes);

void to_proto(const model::Reservation& reservation, const Nodes& nodes, base::Instant now,
              v1::Reservation& out);

}  // namespace gpu_platform::api
