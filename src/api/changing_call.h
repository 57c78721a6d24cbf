#pragma once

#include <functional>

#include "api/peer.h"
#include "api/resume.h"
#include "base/result.h"

// Every call that changes something has the same shape, so that rest/call_table.cpp can name it in
// a row:
//
//   void call(const Request&, const Peer&, Resume, Done<Answer>) const;
//
// `done` is called once: through `resume`, or at once if the call is refused before the core.

namespace gpu_platform::api {

template <class Answer>
using Done = std::function<void(base::Result<Answer>)>;

// The answer to a call that makes something.
template <class Answer>
struct Created {
  Answer answer;
  bool is_repeat = false;  // an earlier call of the same request id made it
};

}  // namespace gpu_platform::api
