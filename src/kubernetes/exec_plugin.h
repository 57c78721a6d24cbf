#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "kubernetes/kubeconfig.h"
#include "os/descriptor.h"

// Programs that print credentials for a cluster (ExecCredential of client.authentication.k8s.io).

namespace gpu_platform::kubernetes {

// What a request is authenticated with. Each part may be empty.
struct Credential {
  std::string token;
  std::string certificate_pem;
  std::string key_pem;
  base::Instant expires_at;  // not set: never
};

// Returns what the plugin gets as KUBERNETES_EXEC_INFO.
std::string exec_info(const ClusterAccess& access);

// Reads what the plugin printed. Errors do not show any of it.
base::Result<Credential> parse_exec_credential(std::string_view text,
                                               const std::string& api_version);

// A token of printable ASCII without spaces: nothing else may stand in a header.
bool is_token(std::string_view text);

struct ExecLimits {
  base::Duration time = base::seconds(30);
  std::size_t output_bytes = std::size_t{1} << 20;
};

// One run of a plugin, without a shell and in a process group of its own, which is killed when the
// run ends or is given up. Thread: the owner's; nothing here waits.
class ExecRun {
 public:
  // Errors say which program could not be started, with the plugin's install hint.
  static base::Result<std::unique_ptr<ExecRun>> start(const ExecPlugin& plugin,
                                                      const std::string& info, ExecLimits limits);
  ~ExecRun();
  ExecRun(const ExecRun&) = delete;
  ExecRun& operator=(const ExecRun&) = delete;

  // Becomes readable when advance() has something to do.
  std::array<int, 3> descriptors() const;  // -1: none
  std::int64_t deadline_ns() const { return deadline_ns_; }
  // What the program printed on its standard output, once it has ended; empty: it still runs. An
  // error has the end of what it wrote on its standard error.
  std::optional<base::Result<std::string>> advance(std::int64_t now_ns);

 private:
  ExecRun(const ExecPlugin& plugin, ExecLimits limits);
  base::Result<std::string> result(int status) const;
  std::unexpected<base::Error> failure(std::string_view what) const;

  std::string command_;
  std::string hint_;
  ExecLimits limits_;
  std::int64_t deadline_ns_ = 0;
  pid_t pid_ = -1;
  os::Descriptor ended_;   // a pidfd
  os::Descriptor output_;  // of the program, not blocking
  os::Descriptor errors_;
  std::string text_;
  std::string error_output_;
};

}  // namespace gpu_platform::kubernetes
