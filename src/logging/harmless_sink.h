#pragma once

#include <memory>

#include <spdlog/sinks/sink.h>

namespace gpu_platform::logging {

// Passes messages on to another sink, each as one line that harms no terminal (line.h): no part of
// a line can end it or begin another.
std::shared_ptr<spdlog::sinks::sink> harmless(std::shared_ptr<spdlog::sinks::sink> inner);

}  // namespace gpu_platform::logging
