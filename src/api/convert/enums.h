#pragma once

#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/reservations.pb.h"
#include "model/command.h"
#include "model/job.h"
#include "model/reservation.h"
#include "model/states.h"

// The model's enumerations in messages. The numbers follow each other: a message's first real value
// is one past its unspecified zero, or zero itself where "none" is a value. A test holds every name
// against the model's, so that neither side can move alone.

namespace gpu_platform::api {

constexpr v1::JobState to_proto(model::JobState state) {
  return static_cast<v1::JobState>(static_cast<int>(state) + 1);
}
constexpr v1::AttemptState to_proto(model::AttemptState state) {
  return static_cast<v1::AttemptState>(static_cast<int>(state) + 1);
}
constexpr v1::JobKind to_proto(model::JobKind kind) {
  return static_cast<v1::JobKind>(static_cast<int>(kind) + 1);
}
constexpr v1::ContainerNetwork to_proto(model::ContainerNetwork network) {
  return static_cast<v1::ContainerNetwork>(static_cast<int>(network) + 1);
}
constexpr v1::ImagePull to_proto(model::ImagePull pull) {
  return static_cast<v1::ImagePull>(static_cast<int>(pull) + 1);
}
constexpr v1::Preflight to_proto(model::Preflight preflight) {
  return static_cast<v1::Preflight>(static_cast<int>(preflight) + 1);
}
constexpr v1::NumaPolicy to_proto(model::NumaPolicy policy) {
  return static_cast<v1::NumaPolicy>(static_cast<int>(policy) + 1);
}
constexpr v1::NetworkLevel to_proto(model::NetworkLevel level) {
  return static_cast<v1::NetworkLevel>(static_cast<int>(level) + 1);
}
constexpr v1::CapacityClass to_proto(model::CapacityClass capacity) {
  return static_cast<v1::CapacityClass>(static_cast<int>(capacity) + 1);
}
constexpr v1::CapacityRequest to_proto(model::CapacityRequest request) {
  return static_cast<v1::CapacityRequest>(static_cast<int>(request) + 1);
}
constexpr v1::ShareMode to_proto(model::ShareMode mode) {
  return static_cast<v1::ShareMode>(static_cast<int>(mode) + 1);
}
constexpr v1::RequiredIsolation to_proto(model::Isolation isolation) {
  return static_cast<v1::RequiredIsolation>(static_cast<int>(isolation) + 1);
}
constexpr v1::Rung to_proto(model::Rung rung) {
  return static_cast<v1::Rung>(static_cast<int>(rung) + 1);
}
constexpr v1::ReservationRepeat to_proto(model::Repeat repeat) {
  return static_cast<v1::ReservationRepeat>(static_cast<int>(repeat) + 1);
}
// `repeat` is a real value, not the unspecified one.
constexpr model::Repeat to_model(v1::ReservationRepeat repeat) {
  return static_cast<model::Repeat>(static_cast<int>(repeat) - 1);
}
// `level` is a real value, not the unspecified one.
constexpr model::NetworkLevel to_model(v1::NetworkLevel level) {
  return static_cast<model::NetworkLevel>(static_cast<int>(level) - 1);
}
constexpr v1::EndReason to_proto(model::EndReason reason) {
  return static_cast<v1::EndReason>(static_cast<int>(reason));
}
constexpr v1::Lost to_proto(model::Lost lost) {
  return static_cast<v1::Lost>(static_cast<int>(lost));
}
constexpr v1::StartReason to_proto(model::StartWhy why) {
  return static_cast<v1::StartReason>(static_cast<int>(why) + 1);
}
constexpr v1::GpuState to_proto(model::GpuState state) {
  return static_cast<v1::GpuState>(static_cast<int>(state) + 1);
}
constexpr v1::NodeState to_proto(model::NodeState state) {
  return static_cast<v1::NodeState>(static_cast<int>(state) + 1);
}

// `state` is a real value, not the unspecified one.
constexpr model::JobState to_model(v1::JobState state) {
  return static_cast<model::JobState>(static_cast<int>(state) - 1);
}
// `kind` is a real value, not the unspecified one.
constexpr model::JobKind to_model(v1::JobKind kind) {
  return static_cast<model::JobKind>(static_cast<int>(kind) - 1);
}
// `policy` is a real value, not the unspecified one.
constexpr model::NumaPolicy to_model(v1::NumaPolicy policy) {
  return static_cast<model::NumaPolicy>(static_cast<int>(policy) - 1);
}
constexpr v1::NotifyOn to_proto(model::NotifyOn when) {
  return static_cast<v1::NotifyOn>(static_cast<int>(when) + 1);
}
// `when` is a real value, not the unspecified one.
constexpr model::NotifyOn to_model(v1::NotifyOn when) {
  return static_cast<model::NotifyOn>(static_cast<int>(when) - 1);
}
// `action` is a real value, not the unspecified one.
constexpr model::JobAction to_model(v1::JobAction action) {
  return static_cast<model::JobAction>(static_cast<int>(action) - 1);
}

}  // namespace gpu_platform::api
