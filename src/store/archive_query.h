#pragma once

#include "model/job.h"
#include "store/store.h"

namespace gpu_platform::store {

// Whether `job` passes every filter of `query`; its limit is not looked at. The one meaning of a
// query: the memory store filters with it, the others check what their indices found.
bool matches(const ArchiveQuery& query, const model::Job& job);

// Adds what the job takes to `bytes`; true when that is all that the query wants.
bool is_enough(const ArchiveQuery& query, const model::Job& job, std::size_t& bytes);

}  // namespace gpu_platform::store
