#include "bin/process_origin.h"

#include <algorithm>
#include <future>
#include <string>

namespace gpu_platform::bin {

model::Origin origin_of(host::UserDirectory& users, model::Door door, ActingProcess process) {
  std::promise<std::string> name;
  users.name_of(process.uid, [&name](const host::UserName& found) { name.set_value(found.text); });
  return {door, name.get_future().get(), process.uid,
          static_cast<std::uint64_t>(std::max(process.pid, 0))};
}

}  // namespace gpu_platform::bin
