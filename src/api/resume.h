#pragma once

#include <functional>

namespace gpu_platform::api {

// Runs a continuation on the thread that the request belongs to. Safe from any thread.
using Resume = std::function<void(std::function<void()>)>;

}  // namespace gpu_platform::api
