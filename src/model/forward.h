#pragma once

// Types of the room, declared alone, for headers that only refer to them.

namespace gpu_platform::model {

struct JobSpec;
struct Policy;
struct TeamSources;
struct Token;

}  // namespace gpu_platform::model
