#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "execution/kubernetes/pods/output_spool.h"
#include "execution/kubernetes/pods/pod_attempts.h"
#include "execution/kubernetes/pods/pod_view.h"
#include "kubernetes/client.h"

namespace gpu_platform::execution {

// Brings what pods print into the spool: while they run, if a client reads it, and completely when
// they have ended. A followed pod costs one stream.
// Thread: the client's.
class OutputFollower {
 public:
  // `on_output` is told of attempts that have printed something while they were followed.
  OutputFollower(kubernetes::Client& client, OutputSpool& spool,
                 std::function<void(model::AttemptId)> on_output)
      : client_(client), spool_(spool), on_output_(std::move(on_output)) {}

  // Follows the pod's output from its beginning, if it has started and is not followed yet.
  void follow(const PodView& pod);
  // Stores all of the output of a pod that has ended, then answers the call. A stream that is still
  // open is waited for: the kubelet ends it with the container.
  void complete(const Call& call, std::function<void(const CallAnswer&)> done);
  void forget(model::AttemptId attempt);

  void advance(std::int64_t now_ns);
  std::int64_t due_ns() const { return due_ns_; }

 private:
  struct Stream {
    kubernetes::StreamId id = 0;  // 0: it has ended
    std::uint64_t had = 0;        // bytes of the rank that were stored before this stream
    std::uint64_t came = 0;       // of this stream
    std::string unwritten;        // the newest of it
    bool is_complete = false;     // it ended as a stream of a pod that has ended does
    Call waiting;                 // that is answered at its end
    std::function<void(const CallAnswer&)> done;
    std::int64_t until_ns = 0;  // until when its end is waited for
  };
  using Key = std::pair<model::AttemptId, std::uint32_t>;

  void fetch(const Call& call, std::function<void(const CallAnswer&)> done);
  void end(const Key& key, const kubernetes::Answer& answer);
  void take(const Key& key, std::string_view bytes);
  void write(Key key);

  kubernetes::Client& client_;
  OutputSpool& spool_;
  std::function<void(model::AttemptId)> on_output_;
  std::map<Key, Stream> streams_;
  std::set<Key> unwritten_;
  std::int64_t due_ns_ = 0;
};

}  // namespace gpu_platform::execution
