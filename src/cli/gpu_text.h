#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "cli/json_view.h"
#include "cli/table.h"

// GPUs as text for people.

namespace gpu_platform::cli {

// "dgx-h100-1 (emulated)", from the object's name and its mark.
std::string marked_name(const Json& object, std::string_view key);

// "30 GiB/80 GiB"; the whole alone where the part is not known.
std::string memory_of(const Json& object, std::string_view used, std::string_view total);

// "93 %"; empty where it was not read.
std::string reading(const Json& object, std::string_view key, std::string_view unit);

// One row for each GPU: `status --all`.
Table gpu_table(const Json& gpus);
// One row for each GPU that an operator changed.
Table changed_table(const Json& gpus);

// Whether the GPU can do its work: free, or given to a job.
bool is_in_service(const Json& gpu);

// How many processes of no job are on it that its reason does not name already.
std::size_t unnamed_unmanaged_processes(const Json& gpu);

// What is wrong with a GPU, of its GpuHealth: the worst first, empty for nothing.
std::vector<std::string> troubles_of(const Json& health, base::Instant now);
// One row for each GPU, those with something wrong first.
Table health_table(const Json& healths, base::Instant now);
// All of one GPU as "key: value" lines.
std::string health_page(const Json& health, base::Instant now);

}  // namespace gpu_platform::cli
