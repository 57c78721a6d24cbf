#include "node/user_switch.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>

#include <algorithm>
#include <utility>

#include "node/raw_call.h"

namespace gpu_platform::node {

namespace {

constexpr std::uint32_t kSame = UINT32_MAX;  // -1: leave it as it is

struct Capabilities {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};  // permitted, effective, inheritable
};

bool has_none(const Capabilities& capabilities) {
  return std::ranges::all_of(capabilities.sets, [](const __user_cap_data_struct& set) {
    return set.permitted == 0 && set.effective == 0 && set.inheritable == 0;
  });
}

}  // namespace

UserSwitch::UserSwitch(Identity identity) : identity_(std::move(identity)) {
  std::ranges::sort(identity_.groups);
  read_back_.resize(identity_.groups.size() + 1);  // one more, so that a surplus shows
}

// If the host sets fs.suid_dumpable, every change of an id makes the process one that the user
// may trace, until that is taken back. Meanwhile the capabilities that are kept forbid it.
SwitchFailure UserSwitch::become() {
  const auto& [uid, gid, groups, name] = identity_;
  raw_call(SYS_prctl, PR_SET_KEEPCAPS, 1, 0, 0, 0);
  const long grouped = raw_call(SYS_setgroups, groups.size(), groups.data());
  if (grouped != 0) return {"set its groups", static_cast<int>(-grouped)};
  const long as_group = raw_call(SYS_setresgid, gid, gid, gid);
  if (as_group != 0) return {"set its group", static_cast<int>(-as_group)};
  const long as_user = raw_call(SYS_setresuid, uid, uid, uid);
  if (as_user != 0) return {"set its user", static_cast<int>(-as_user)};
  if (const char* what = close_to_tracing()) return {what, 0};
  raw_call(SYS_prctl, PR_SET_KEEPCAPS, 0, 0, 0, 0);
  if (uid != 0) {
    // What was kept, and what setresuid leaves besides: an inheritable set. The ambient set goes
    // with the permitted one.
    Capabilities none;
    const long dropped = raw_call(SYS_capset, &none.header, &none.sets[0]);
    if (dropped != 0) return {"drop capabilities", static_cast<int>(-dropped)};
  }
  return compare();
}

SwitchFailure UserSwitch::compare() {
  const auto& [uid, gid, groups, name] = identity_;
  std::uint32_t real = 0;
  std::uint32_t effective = 0;
  std::uint32_t saved = 0;
  if (raw_call(SYS_getresuid, &real, &effective, &saved) != 0 || real != uid || effective != uid ||
      saved != uid) {
    return {"its user is not the one asked for", 0};
  }
  if (raw_call(SYS_getresgid, &real, &effective, &saved) != 0 || real != gid || effective != gid ||
      saved != gid) {
    return {"its group is not the one asked for", 0};
  }
  const long count = raw_call(SYS_getgroups, read_back_.size(), read_back_.data());
  if (count != static_cast<long>(groups.size()) ||
      !std::equal(groups.begin(), groups.end(), read_back_.begin())) {
    return {"its groups are not those asked for", 0};
  }
  if (uid == 0) return {};
  Capabilities left;
  if (raw_call(SYS_capget, &left.header, &left.sets[0]) != 0 || !has_none(left)) {
    return {"it still has capabilities", 0};
  }
  return {};
}

// What /proc shows of the process belongs to root all the while, with any setting of the host:
// else the user could name it as a file.
bool UserSwitch::borrow() const {
  return raw_call(SYS_setgroups, identity_.groups.size(), identity_.groups.data()) == 0 &&
         raw_call(SYS_setresgid, kSame, identity_.gid, kSame) == 0 &&
         raw_call(SYS_setresuid, kSame, identity_.uid, kSame) == 0 && close_to_tracing() == nullptr;
}

bool UserSwitch::give_back() {
  return raw_call(SYS_setresuid, kSame, 0, kSame) == 0 &&
         raw_call(SYS_setresgid, kSame, 0, kSame) == 0 && close_to_tracing() == nullptr;
}

const char* close_to_tracing() {
  raw_call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  const bool is_closed = raw_call(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
  return is_closed ? nullptr : "it could be traced";
}

}  // namespace gpu_platform::node
