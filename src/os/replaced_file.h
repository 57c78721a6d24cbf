#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

// Small files that outlive crashes and power cuts.

namespace gpu_platform::os {

// Puts a file with this text in the place of the one at `path`, if any. At any moment the old or
// the new file is there; once this has returned without an error, the new one is kept. Uses
// PATH.new meanwhile: two callers must not replace the same file at once.
base::Status replace_file(const std::string& path, std::string_view text, mode_t mode);

}  // namespace gpu_platform::os
