#pragma once

#include <string>
#include <vector>

#include "controller/state.h"

namespace gpu_platform::controller {

// Checks the invariants of a state. Returns nothing if all of them hold; otherwise one sentence per
// violation, each beginning with the invariant's name.
//   capacity      no GPU, CPU or byte of a node is held beyond what it has
//   holders       what nodes say is held is what attempts hold, GPU by GPU
//   gang          an attempt holds all that its job asked for
//   free          a GPU that is AVAILABLE is held by no attempt, one in use is held by one
//   one-process   at most one attempt of a job may have processes, unless the others were lost
//   conservation  every job is waiting, held, active, preempted, or ended and still holding
//   dependencies  no job waits for what has been decided, or passes what it waits for
//   array         an array counts its members, and no more of them than its limit go on at once
//   limits        changed time limits are kept for attempts that may have processes
//   tokens        a token stands for a user but root, ends after it began, and outlives none that
//   it
//                 was made with; no user has too many of them, or two of one name
//   books         what attempts hold of a GPU and the rest that its clock has are all of it, and
//   the
//                 clock says what becomes of the rest
//   indices       every index equals what the truth gives when worked out anew
// Visits everything: for tests and simulations.
std::vector<std::string> check_invariants(const State& state);

// The cheap part: it checks only what the given job and its nodes touch. The daemon runs it on
// every job of a batch.
std::vector<std::string> check_job(const State& state, model::JobId job);

}  // namespace gpu_platform::controller
