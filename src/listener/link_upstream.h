#pragma once

#include <string>

#include "listener/upstream.h"

namespace gpu_platform::listener {

// The way to the daemon over the link (link.h): makes a socket pair and sends one end with the
// credential.
class LinkUpstream final : public Upstream {
 public:
  // `link` stays the caller's and outlives this.
  explicit LinkUpstream(int link) : link_(link) {}
  base::Result<int> open(const Credential& credential) override;

 private:
  bool send(const std::string& message, int descriptor) const;

  const int link_;
};

}  // namespace gpu_platform::listener
