#include <cstdio>
#include <cstring>

// A program that was built without protections, for hardening_test. It has all that the flags would
// protect.

namespace gpu_platform::hardening {

int length_of(const char* text) {
  char copy[64];
  std::strcpy(copy, text);
  return std::snprintf(copy, sizeof copy, "%s", text);
}

}  // namespace gpu_platform::hardening

int main(int, char** arguments) {
  return gpu_platform::hardening::length_of(arguments[0]);
}
