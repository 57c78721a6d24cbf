#pragma once

#include <cstdint>

#include "controller/apply/application.h"
#include "scheduling/books.h"

// The marks of attempts on borrowed GPUs, as guarantees, GPUs and other attempts change.

namespace gpu_platform::controller {

// Records the attempts that begin or cease to borrow.
void note_changes(Application& a, const scheduling::Lending::Changes& changes);
// Call it when guarantees, GPUs, or the set of preemptible attempts have changed.
void lend_anew(Application& a);
// Call it when nodes or GPUs have changed.
void follow_cluster_size(Application& a, std::uint64_t gpus_before);

}  // namespace gpu_platform::controller
