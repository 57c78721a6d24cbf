#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstdint>
#include <type_traits>

// System calls without the C library: what failed comes back as -errno. For a child on its way to
// its program, and for calls that the C library would make for all threads or not at all. Nothing
// here allocates or fails otherwise.

namespace gpu_platform::node {

inline long raw_call6(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory", "cc");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory", "cc");
  return x0;
#else
#error "raw calls are written for x86-64 and arm64"
#endif
}

template <class T>
long as_argument(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<long>(value);
  } else {
    return static_cast<long>(value);
  }
}
inline long as_argument(std::nullptr_t) {
  return 0;
}

template <class... Arguments>
long raw_call(long number, Arguments... arguments) {
  static_assert(sizeof...(arguments) <= 6);
  const long all[] = {as_argument(arguments)..., 0, 0, 0, 0, 0, 0};
  return raw_call6(number, all[0], all[1], all[2], all[3], all[4], all[5]);
}

// ---- the ones that several use

inline int raw_open(const char* path, int flags, unsigned mode = 0) {
  return static_cast<int>(raw_call(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode));
}
inline void raw_close(int fd) {
  raw_call(SYS_close, fd);
}
// Onto another number, or, where it is that already, to be kept by exec.
inline int raw_keep_as(int fd, int number) {
  if (fd == number) return static_cast<int>(raw_call(SYS_fcntl, fd, F_SETFD, 0));
  return static_cast<int>(raw_call(SYS_dup3, fd, number, 0));
}
inline bool raw_write_text(int fd, const char* text, std::size_t size) {
  return raw_call(SYS_write, fd, text, size) == static_cast<long>(size);
}
inline int raw_stat_of(int fd, struct stat& about) {
  return static_cast<int>(raw_call(SYS_fstat, fd, &about));
}
inline int raw_stat_at(const char* path, struct stat& about) {
  return static_cast<int>(raw_call(SYS_newfstatat, AT_FDCWD, path, &about, 0));
}
[[noreturn]] inline void raw_exit(int code) {
  while (true) raw_call(SYS_exit_group, code);
}

}  // namespace gpu_platform::node
