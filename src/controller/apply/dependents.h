#pragma once

#include "controller/admission_gates.h"
#include "controller/apply/application.h"

// Starts and ends, as the jobs see them that wait for other jobs.

namespace gpu_platform::controller {

// A member of an array has ended, a job has started for the first time: resolves what waits for it.
void note_end_of_member(Application& a, const model::Job& job);
void note_first_start(Application& a, const model::Job& job);

// Takes from the jobs that depend on the target the conditions that are met or never will be.
void resolve_dependents(Application& a, const model::DependencyTarget& target);

// The first job of a name that has not ended waits for no other of that name.
void free_singleton(Application& a, const AdmissionGates::NameKey& name);

}  // namespace gpu_platform::controller
