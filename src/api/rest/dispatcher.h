#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "api/call_access.h"
#include "api/rest/call_table.h"
#include "api/rest/exchange.h"
#include "api/rest/file_watcher.h"
#include "api/rest/routed_call.h"
#include "api/rest/routes.h"

namespace gpu_platform::api {

// Finds the call that a request is for, checks that the client may use it, and leaves the rest to
// its row in call_table.h. Immutable once made; safe from any thread.
class Dispatcher {
 public:
  // `page_bytes`: the approximate size of one page of a list. `refusals` gets the refused calls
  // that would have changed something; null: they are not recorded.
  Dispatcher(const Calls& calls, EventHub& hub, std::size_t page_bytes,
             RefusalBook* refusals = nullptr);

  // `watcher` belongs to the connection's thread.
  void handle(const HttpRequest& request, Exchange& exchange, FileWatcher& watcher) const;

  const RoutingTable& table() const { return table_; }

 private:
  struct Entry {
    CallRow row;
    CallAccess access;
  };
  void handle_page(std::string_view page, const HttpRequest& request, Exchange& exchange) const;
  void refuse_unadmitted(const RoutedCall& call, base::Error error) const;
  void handle_call(const RoutedCall& call, const CallRow& row) const;
  Reply open_api() const;
  Reply metrics(const model::Caller& caller) const;

  HandlerContext context_;
  RoutingTable table_;
  std::map<std::string, Entry, std::less<>> entries_;  // by the call's full name
  std::string openapi_;
};

}  // namespace gpu_platform::api
