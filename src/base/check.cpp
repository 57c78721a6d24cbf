#include "base/check.h"

#include <cstdio>  // layers allow stderr: the last word before the program stops
#include <cstdlib>

namespace gpu_platform::base {

void check_failed(const char* condition, const char* file, int line) {
  // layers allow stderr: a broken assumption is said before the program stops.
  std::fprintf(stderr, "%s:%d: broken assumption: %s\n", file, line, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace gpu_platform::base
