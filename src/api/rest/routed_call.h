#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <google/protobuf/message.h>

#include "api/rest/exchange.h"
#include "api/rest/file_watcher.h"
#include "api/rest/replies.h"
#include "api/rest/routes.h"
#include "base/result.h"
#include "model/audit.h"

namespace gpu_platform::api {

class Calls;
class EventHub;
class RefusalBook;

// What the handlers of calls work with. Outlives every request.
struct HandlerContext {
  const Calls& calls;
  EventHub& hub;
  std::size_t page_bytes = 0;       // the approximate size of one page of a list
  RefusalBook* refusals = nullptr;  // null: refused calls are not recorded
};

// A request that is known to be for a call which the client may use. Lives on the connection's
// thread until its handler returns.
struct RoutedCall {
  const HandlerContext& context;
  const HttpRequest& request;
  const Route& route;
  Exchange& exchange;
  FileWatcher& watcher;                      // of the connection's thread
  std::optional<model::AuditAction> action;  // of calls that the audit trail tells of
  Fields fields = nullptr;
};

// Reads the request's message, or refuses the call.
bool read_message(const RoutedCall& call, google::protobuf::Message& out);

// Answers with the error.
void answer_error(const RoutedCall& call, base::Error error);

// Counts the answer among those that go on, or answers that there are too many.
bool begin_stream(Exchange& exchange, const std::string& request_id);

// Answers with the error. For a call that would have changed something, it answers after the audit
// trail has the entry. `audited` has the call's known details; unset: the trail does not tell of
// it.
void refuse(const HandlerContext& context, Exchange& exchange, const std::string& request_id,
            std::optional<model::AuditedCall> audited, base::Error error);

// What is needed of a call for an answer that comes after its handler has returned.
struct LateAnswer {
  explicit LateAnswer(const RoutedCall& call, std::optional<model::AuditedCall> of = std::nullopt);

  // Null: the connection is gone.
  std::shared_ptr<Exchange> open() const { return exchange.lock(); }
  // As the function above.
  void refuse(Exchange& opened, base::Error error) const;

  const HandlerContext& context;
  const Route& route;
  std::weak_ptr<Exchange> exchange;
  std::string request_id;
  std::optional<model::AuditedCall> audited;
};

}  // namespace gpu_platform::api
