#pragma once

#include "cli/cli_fixture_test.h"

// What the commands that only show something print.

namespace gpu_platform::cli {

class Show : public Cli {
 protected:
  const InUtc zone_;
};

}  // namespace gpu_platform::cli
