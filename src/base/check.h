#pragma once

// CHECK stops the program on a broken assumption of ours, in release builds too: going on with
// wrong state costs more than a restart, because the next daemon recovers from the journal. DCHECK
// is the same in debug builds only, for conditions too costly to test on every call.

namespace gpu_platform::base {

// Prints the condition with its place and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace gpu_platform::base

#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::gpu_platform::base::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)

#ifdef NDEBUG
#define DCHECK(condition) \
  do {                    \
    if (false) {          \
      (void)(condition);  \
    }                     \
  } while (false)
#else
#define DCHECK(condition) CHECK(condition)
#endif
