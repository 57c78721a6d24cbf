#pragma once

#include <tuple>
#include <utility>

#include "api/advice_calls.h"
#include "api/alert_calls.h"
#include "api/audit_calls.h"
#include "api/budget_calls.h"
#include "api/call_context.h"
#include "api/channel_calls.h"
#include "api/cluster_calls.h"
#include "api/job_calls.h"
#include "api/kpi_calls.h"
#include "api/planning_calls.h"
#include "api/price_calls.h"
#include "api/reservation_calls.h"
#include "api/share_calls.h"
#include "api/site_calls.h"
#include "api/statistics_calls.h"
#include "api/team_calls.h"
#include "api/telemetry_calls.h"
#include "api/token_calls.h"
#include "api/usage_calls.h"
#include "api/use_calls.h"

namespace gpu_platform::api {

// The calls of proto/gpu_platform/v1, independent of the transport: one class for each service.
// Safe from any thread. Only the composition and the table of calls need all of them.
class Calls {
 public:
  Calls(const CoreAccess& core, CallOptions options) : context_(core, std::move(options)) {}
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  // Returns the calls of one service: of<JobCalls>().
  template <class Service>
  const Service& of() const {
    return std::get<Service>(services_);
  }

  const JobReader& reader() const { return context_.reader; }
  CallMeter& meter() const { return context_.meter; }

 private:
  template <class... Services>
  static std::tuple<Services...> all_with(const CallContext& context, std::tuple<Services...>*) {
    return {Services(context)...};
  }

  using Services =
      std::tuple<JobCalls, ChannelCalls, ClusterCalls, PlanningCalls, ReservationCalls, ShareCalls,
                 TokenCalls, TeamCalls, AuditCalls, SiteCalls, StatisticsCalls, TelemetryCalls,
                 UseCalls, KpiCalls, AlertCalls, UsageCalls, PriceCalls, BudgetCalls, AdviceCalls>;
  CallContext context_;
  Services services_ = all_with(context_, static_cast<Services*>(nullptr));
};

}  // namespace gpu_platform::api
