#pragma once

#include <span>

#include "health/rules.h"

// The rows as they are shipped, before a profile and a site change them.

namespace gpu_platform::health {

std::span<const Rule> xid_rows();  // ascending by XID
std::span<const Rule> condition_rows();
std::span<const Rule> published_rows();  // conditions of nodes that health tools publish

}  // namespace gpu_platform::health
