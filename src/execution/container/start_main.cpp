// gpu-platform-start WORD WORKDIR PROGRAM [ARGUMENT...]
// The first program of a job's container, and of each command that is started in it. The engine
// executes it as the job's user; it waits until root's process outside, which has compared what the
// engine made with what was asked for, says so in the file WORD, and executes the job's program. It
// has no loader and no C library, and looks at no variable but PATH, after the wait: nothing of the
// image or of the user acts on it before. Users may execute its file and not read it: so the
// kernel lets no process of a user trace it.

#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "execution/container/start_signs.h"
#include "node/raw_call.h"

namespace {
constexpr int kDamagedStart = 125;
}

// What a compiler may call though there is no library.
extern "C" {
void* memset(void* to, int value, std::size_t size) {
  auto* bytes = static_cast<volatile unsigned char*>(to);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(value);
  return to;
}
void* memcpy(void* to, const void* from, std::size_t size) {
  auto* bytes = static_cast<volatile unsigned char*>(to);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<const unsigned char*>(from)[i];
  return to;
}

// What functions keep beside their frames, and look at before they return.
std::uintptr_t __stack_chk_guard;
[[noreturn]] void __stack_chk_fail() {
  gpu_platform::node::raw_exit(kDamagedStart);
}
}

namespace gpu_platform::execution {

namespace {

using node::raw_call;

constexpr int kDamaged = kDamagedStart;
constexpr std::size_t kMaxPath = 4096;
constexpr const char* kUsualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

char buffer[kMaxPath];

std::size_t length(const char* text) {
  std::size_t size = 0;
  while (text[size] != '\0') ++size;
  return size;
}

bool contains(const char* text, char wanted) {
  for (; *text != '\0'; ++text) {
    if (*text == wanted) return true;
  }
  return false;
}

bool equal(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

// Puts `size` bytes and the name into the buffer; null: they are too long.
const char* joined(const char* folder, std::size_t size, const char* name) {
  const std::size_t rest = length(name);
  if (size + rest + 2 > kMaxPath) return nullptr;
  memcpy(buffer, folder, size);
  if (size > 0 && buffer[size - 1] != '/') buffer[size++] = '/';
  memcpy(buffer + size, name, rest + 1);
  return buffer;
}

// Only root can write the file, so what it says is root's word.
void wait_for(const char* word) {
  const char* const path = joined(kStartFolder, length(kStartFolder), word);
  const int fd = path == nullptr ? -1 : node::raw_open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) node::raw_exit(kDamaged);
  const long place =
      raw_call(SYS_mmap, nullptr, sizeof(std::uint32_t), PROT_READ, MAP_SHARED, fd, 0);
  if (place < 0) node::raw_exit(kDamaged);
  node::raw_close(fd);
  const auto* said = reinterpret_cast<const std::uint32_t*>(place);
  while (__atomic_load_n(said, __ATOMIC_ACQUIRE) == kWait) {
    raw_call(SYS_futex, said, FUTEX_WAIT, kWait, nullptr, nullptr, 0);
  }
  if (__atomic_load_n(said, __ATOMIC_ACQUIRE) != kGo) node::raw_exit(kDamaged);
  raw_call(SYS_munmap, place, sizeof(std::uint32_t));
}

// A folder that is not there is made, with the rights of the user, as the engines make it.
int enter(const char* workdir) {
  const auto change = [&] { return static_cast<int>(raw_call(SYS_chdir, workdir)); };
  const int error = change();
  const std::size_t size = length(workdir);
  if (error != -ENOENT || size >= kMaxPath) return error;
  for (std::size_t i = 1; i <= size; ++i) {
    if (workdir[i] != '/' && workdir[i] != '\0') continue;
    memcpy(buffer, workdir, i);
    buffer[i] = '\0';
    raw_call(SYS_mkdirat, AT_FDCWD, static_cast<const char*>(buffer), 0755);
  }
  return change();
}

const char* path_of(char** environment) {
  for (; *environment != nullptr; ++environment) {
    const char* const e = *environment;
    if (e[0] == 'P' && e[1] == 'A' && e[2] == 'T' && e[3] == 'H' && e[4] == '=') return e + 5;
  }
  return kUsualPath;
}

// Returns why it cannot be executed, as -errno. Parts of PATH that are no absolute path are passed
// over: they would mean the working directory.
int execute(char** arguments, char** environment) {
  const char* const program = arguments[0];
  const auto attempt = [&](const char* path) {
    return static_cast<int>(raw_call(SYS_execve, path, arguments, environment));
  };
  if (*program == '\0') return -ENOENT;
  if (contains(program, '/')) return attempt(program);
  int found = -ENOENT;
  const char* rest = path_of(environment);
  while (true) {
    std::size_t size = 0;
    while (rest[size] != ':' && rest[size] != '\0') ++size;
    const char* const path = rest[0] == '/' ? joined(rest, size, program) : nullptr;
    const int error = path == nullptr ? -ENOENT : attempt(path);
    if (error == -EACCES) {
      found = error;
    } else if (error != -ENOENT && error != -ENOTDIR) {
      return error;
    }
    if (rest[size] == '\0') return found;
    rest += size + 1;
  }
}

void say(const char* text) {
  node::raw_write_text(2, text, length(text));
}

void say_why(const char* what, int error) {
  say("gpu-platform: ");
  say(what);
  switch (error) {
    case ENOENT:
      say(": no such file or directory\n");
      return;
    case EACCES:
      say(": permission denied\n");
      return;
    case ENOEXEC:
      say(": not a program of this machine\n");
      return;
    default:
      say(": cannot be used\n");
  }
}

// The first process tells root's process, which tells the user; others tell the user themselves.
[[noreturn]] void give_up(int outcome, StartOutcome::Step step, const char* what, int error) {
  const StartOutcome why{step, error};
  if (outcome >= 0) {
    raw_call(SYS_write, outcome, &why, sizeof why);
  } else {
    say_why(what, error);
  }
  const bool is_missing =
      step == StartOutcome::Step::kProgram && (error == ENOENT || error == ENOTDIR);
  node::raw_exit(is_missing ? kNoProgram : kNotExecutable);
}

// The kernel's random bytes, behind the environment. The lowest byte stays zero: a text that is
// copied too far ends there.
[[gnu::always_inline]] inline void set_guard(char** environment) {
  while (*environment != nullptr) ++environment;
  const auto* entry = reinterpret_cast<const Elf64_auxv_t*>(environment + 1);
  for (; entry->a_type != AT_NULL; ++entry) {
    if (entry->a_type != AT_RANDOM) continue;
    __stack_chk_guard = *reinterpret_cast<const std::uintptr_t*>(entry->a_un.a_val) & ~0xffUL;
  }
}

}  // namespace

// It never returns, so it looks at no guard itself.
extern "C" [[noreturn]] [[gnu::used]] void gpu_platform_start(long* stack) {
  const long count = stack[0];
  char** const arguments = reinterpret_cast<char**>(stack + 1);
  char** const environment = arguments + count + 1;
  set_guard(environment);
  raw_call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (count < 4 || contains(arguments[1], '/')) node::raw_exit(kDamaged);
  wait_for(arguments[1]);
  int outcome = -1;
  if (equal(arguments[1], kFirstWord)) {
    const char* const path = joined(kStartFolder, length(kStartFolder), kOutcome);
    outcome = node::raw_open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  }
  const int entered = enter(arguments[2]);
  if (entered < 0) give_up(outcome, StartOutcome::Step::kWorkdir, arguments[2], -entered);
  const int error = execute(arguments + 3, environment);
  give_up(outcome, StartOutcome::Step::kProgram, arguments[3], -error);
}

}  // namespace gpu_platform::execution

#if defined(__x86_64__)
asm(".globl _start\n"
    ".type _start, @function\n"
    "_start:\n"
    "  xor %ebp, %ebp\n"
    "  mov %rsp, %rdi\n"
    "  and $-16, %rsp\n"
    "  call gpu_platform_start\n"
    "  hlt\n");
#elif defined(__aarch64__)
asm(".globl _start\n"
    ".type _start, %function\n"
    "_start:\n"
    "  mov x29, #0\n"
    "  mov x30, #0\n"
    "  mov x0, sp\n"
    "  bl gpu_platform_start\n"
    "  brk #0\n");
#endif
