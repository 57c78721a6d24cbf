#include "listener/confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "listener/syscall_filter.h"
#include "os/descriptor.h"

namespace gpu_platform::listener {

namespace {

std::unexpected<base::Error> failed(std::string_view what) {
  return std::unexpected(base::system_error(what, errno));
}

Guard guard(std::string name, const std::string& why_not) {
  return {std::move(name), why_not.empty(), why_not};
}

base::Status set_limits(std::uint64_t open_files) {
  const rlimit none{0, 0};
  // A core would have the key.
  if (::setrlimit(RLIMIT_CORE, &none) != 0 || ::setrlimit(RLIMIT_FSIZE, &none) != 0) {
    return failed("set limits");
  }
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return failed("read a limit");
  files.rlim_cur = files.rlim_max = std::min<rlim_t>(files.rlim_max, open_files);
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) return failed("set limits");
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return failed("forbid dumps");
  return {};
}

// An empty folder without a name, in which nothing can be made, as the root of what this process
// sees.
base::Status enter_empty_root() {
  char path[] = "/tmp/gpu-platform-listener-XXXXXX";
  if (::mkdtemp(path) == nullptr) return failed("make a folder");
  const os::Descriptor folder(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  const bool is_there = folder.is_open() && ::fchdir(folder.get()) == 0;
  ::rmdir(path);
  if (!is_there || ::chroot(".") != 0 || ::chdir("/") != 0) return failed("enter an empty folder");
  return {};
}

base::Status drop_rights(const ConfinementOptions& options) {
  if (::geteuid() == 0) {
    if (!options.user) {
      return base::fail(base::ErrorCode::kFailedPrecondition,
                        "the listener is not to run as root, and no other user is named");
    }
    const auto [uid, gid] = *options.user;
    for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
      if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return failed("drop capabilities");
    }
    if (::setgroups(0, nullptr) != 0 || ::setresgid(gid, gid, gid) != 0 ||
        ::setresuid(uid, uid, uid) != 0) {
      return failed("become another user");
    }
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  // A service may be forbidden to call this; what counts is what is left.
  (void)::syscall(SYS_capset, &header, sets);
  if (::syscall(SYS_capget, &header, sets) != 0) return failed("read capabilities");
  const bool has_some = std::ranges::any_of(sets, [](const __user_cap_data_struct& set) {
    return set.effective != 0 || set.permitted != 0 || set.inheritable != 0;
  });
  if (has_some || ::geteuid() == 0 || ::getuid() == 0) {
    return base::fail(base::ErrorCode::kInternal, "the listener still has rights of root");
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("forbid new rights");
  // A change of the user allows dumps again.
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return failed("forbid dumps");
  return {};
}

// As in linux/landlock.h of new kernels; older ones take the beginning of it.
struct LandlockRules {
  std::uint64_t files = 0;
  std::uint64_t net = 0;
  std::uint64_t scoped = 0;
};

// Returns why not; empty: no file can be opened or changed by a path any more, and as far as the
// kernel knows how, no connection made and no process of others signalled.
std::string close_files() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1U);
  if (version <= 0) return std::string("this kernel has no Landlock: ") + ::strerror(errno);
  LandlockRules rules;
  const int kinds = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;
  rules.files = (std::uint64_t{1} << kinds) - 1;
  if (version >= 4) rules.net = 3;     // bind, connect
  if (version >= 6) rules.scoped = 3;  // abstract sockets, signals
  const std::size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  const os::Descriptor set(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, size, 0U)));
  if (!set.is_open() || ::syscall(SYS_landlock_restrict_self, set.get(), 0U) != 0) {
    return std::string("Landlock refuses: ") + ::strerror(errno);
  }
  return {};
}

std::string filter_calls() {
  std::vector<sock_filter> filter = syscall_filter();
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0) {
    return {};
  }
  return std::string("this kernel filters no system calls: ") + ::strerror(errno);
}

}  // namespace

base::Result<std::vector<Guard>> confine(const ConfinementOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  TRY(set_limits(options.open_files));
  std::string no_root = "not started as root";
  if (::geteuid() == 0) {
    const base::Status root = enter_empty_root();
    no_root = root ? std::string() : root.error().message;
  }
  TRY(drop_rights(options));
  const std::string no_landlock = close_files();
  // The change of the user has forgotten it. The end of the link says the same, if this comes late.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return failed("end with the daemon");
  const std::string no_filter = filter_calls();
  const bool has_no_files = no_root.empty() || no_landlock.empty();
  return std::vector<Guard>{guard("rights", ""), guard("memory", ""),
                            guard("files", has_no_files ? "" : no_landlock + "; " + no_root),
                            guard("system-calls", no_filter)};
}

}  // namespace gpu_platform::listener
