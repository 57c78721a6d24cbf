#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "kubernetes/exec_plugin.h"
#include "kubernetes/kubeconfig.h"

// The credential that requests carry now, and how it is renewed: a token file is read again every
// minute, a plugin is run again when its credential has expired, both after a 401. Thread: the
// owner's; nothing here waits. Secrets appear in no message.

namespace gpu_platform::kubernetes {

class Credentials {
 public:
  explicit Credentials(ClusterAccess access, ExecLimits limits = {});

  enum class State : std::uint8_t {
    kReady,    // current() may be used
    kWaiting,  // a plugin runs
    kFailed,   // failure() says why; asked again later it is tried again
  };
  // Begins to get a credential if that is needed. `now_ns`: monotonic.
  State prepare(std::int64_t now_ns);
  const Credential& current() const { return current_; }
  std::uint64_t generation() const { return generation_; }  // changes with current()
  const std::string& failure() const { return failure_; }

  // The server took (or refused, 401) the credential of that generation. Returns whether another
  // one is there or on its way, so that the refused request can be repeated.
  void accept(std::uint64_t generation);
  bool refuse(std::uint64_t generation, std::int64_t now_ns);

  // The descriptor of a running plugin, to be polled; then prepare() is called again.
  std::array<int, 3> descriptors() const;
  std::int64_t due_ns() const;  // 0: none

 private:
  State prepare_from_file(std::int64_t now_ns);
  State prepare_from_plugin(std::int64_t now_ns);
  void take(Credential credential);
  State fail(std::string why, std::int64_t now_ns);
  bool can_run_again(std::int64_t now_ns) const;

  ClusterAccess access_;
  ExecLimits limits_;
  Credential current_;
  std::uint64_t generation_ = 0;  // 0: there is none yet
  std::uint64_t accepted_ = 0;    // the last generation that the server took
  std::string failure_;
  std::int64_t tried_ns_ = 0;  // when the file was read, or the plugin's last run ended
  std::unique_ptr<ExecRun> run_;
};

}  // namespace gpu_platform::kubernetes
