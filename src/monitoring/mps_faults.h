#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/ids.h"

// The faults of MPS servers.

namespace gpu_platform::monitoring {

// Finds which failures of the clients of an MPS server come of the fault of another client: a fatal
// fault of one of them ends all of them. A fault of a server begins with what is told of it first:
// an XID of a client, the loss of the server, or a failure. Clients that had begun before it and
// fail within kEndsWithin have failed by it:
//
// - If the driver has named a client, that one is at fault, and the others are not. What it says of
//   other clients moments later (a cleanup) follows from the first.
// - Else, if the server was lost, no client is at fault.
// - Else a client that fails alone is at fault. If others fail while its end is still held back,
//   any of them may be at fault: it is held against none of them, nor against those that fail
//   later.
//
// Pure; times are the wall clock's, as those of starts and ends: a jump of it misjudges the ends of
// half a minute at most. Thread: one owner. Memory: the latest kMaxFaults faults.
class MpsFaults {
 public:
  // Programs need a moment to notice, and to end.
  static constexpr base::Duration kEndsWithin = base::seconds(30);
  // The gate holds an end for no longer: such ends are told before the first of them is judged.
  static constexpr base::Duration kTogether = base::seconds(2);
  static constexpr std::size_t kMaxFaults = 256;

  // Each user has one on a GPU.
  struct Server {
    std::string gpu;  // UUID
    std::uint32_t uid = 0;

    friend bool operator==(const Server&, const Server&) = default;
  };
  struct Client {
    model::AttemptId attempt;
    Server server;
    base::Instant began;
  };
  // Why a client that failed is not at fault.
  struct Cause {
    std::optional<model::AttemptId> culprit;  // none: it is not known
    bool is_server_lost = false;

    friend bool operator==(const Cause&, const Cause&) = default;
  };

  // The driver has told an XID that programs cause, with the pid of a process of this client.
  void take_xid(const Client& client, base::Instant at);
  // The server, or its control daemon, is gone.
  void take_loss(const Server& server, base::Instant at);
  // The client has failed of itself. It may be repeated.
  void take_failure(const Client& client, base::Instant at);

  // Returns why a failure that was taken is another's, as far as is known by now; nothing: it is
  // the client's own.
  std::optional<Cause> cause_of_failure(model::AttemptId attempt) const;

 private:
  struct Failure {
    Client client;
    base::Instant at;
  };
  struct Fault {
    Server server;
    base::Instant at;
    std::optional<model::AttemptId> culprit;
    bool is_server_lost = false;
    std::vector<Failure> failures;
  };

  Fault* latest_beside(const Server& server, base::Instant at);
  Fault* cause_of(const Client& client, base::Instant at);
  const Fault* fault_with(model::AttemptId attempt) const;
  Fault& begin(const Server& server, base::Instant at);
  void take_over_failures(Fault& fault);

  std::deque<Fault> faults_;  // the latest told last
};

}  // namespace gpu_platform::monitoring
