#pragma once

#include "model/job.h"
#include "store/store.h"

namespace gpu_platform::store {

// Whether `job` passes every filter of `query`; its limit is not looked at. The one meaning of a
// query: the memory store filters with it, the others check what their indices found.
bool matches(const ArchiveQuery& query, const model::Job& job);

}  // namespace gpu_platform::store
