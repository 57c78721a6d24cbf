#include "execution/container/engine_open.h"

#include "os/clock.h"

namespace gpu_platform::execution {

ContainerDone<> open_engine(EngineCalls& engine, const std::string& socket, const LongStep& step,
                            base::Duration timeout) {
  const std::int64_t give_up_at = os::boot_ms() + base::whole_milliseconds(timeout);
  const std::string what = "the container engine at " + socket;
  while (true) {
    const auto opened = engine.open();
    if (opened) return {};
    const EngineFailure& failure = opened.error();
    const bool may_pass = failure.is_away || failure.status >= 500;
    if (!may_pass || os::boot_ms() >= give_up_at) return container_failed(what, failure);
    step.tell(fmt::format("waiting for {}: {}", what, failure.message));
    if (!step.wait(base::seconds(1))) return container_failed("stopped meanwhile");
  }
}

}  // namespace gpu_platform::execution
