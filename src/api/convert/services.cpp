#include "api/convert/services.h"

#include "gpu_platform/v1/access.pb.h"
#include "gpu_platform/v1/advice.pb.h"
#include "gpu_platform/v1/alerts.pb.h"
#include "gpu_platform/v1/audit.pb.h"
#include "gpu_platform/v1/budgets.pb.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/configuration.pb.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/kpi.pb.h"
#include "gpu_platform/v1/planning.pb.h"
#include "gpu_platform/v1/prices.pb.h"
#include "gpu_platform/v1/reservations.pb.h"
#include "gpu_platform/v1/shares.pb.h"
#include "gpu_platform/v1/slurm.pb.h"
#include "gpu_platform/v1/statistics.pb.h"
#include "gpu_platform/v1/teams.pb.h"
#include "gpu_platform/v1/telemetry.pb.h"
#include "gpu_platform/v1/tokens.pb.h"
#include "gpu_platform/v1/usage.pb.h"
#include "gpu_platform/v1/use.pb.h"

namespace gpu_platform::api {

namespace pb = google::protobuf;

std::vector<const pb::ServiceDescriptor*> services() {
  std::vector<const pb::ServiceDescriptor*> found;
  for (const pb::FileDescriptor* file : {v1::Job::descriptor()->file(),
                                         v1::Node::descriptor()->file(),
                                         v1::Needs::descriptor()->file(),
                                         v1::Share::descriptor()->file(),
                                         v1::Reservation::descriptor()->file(),
                                         v1::AuditEntry::descriptor()->file(),
                                         v1::Statistics::descriptor()->file(),
                                         v1::SlurmNames::descriptor()->file(),
                                         v1::Identity::descriptor()->file(),
                                         v1::Token::descriptor()->file(),
                                         v1::Team::descriptor()->file(),
                                         v1::Configuration::descriptor()->file(),
                                         v1::QueryHistoryRequest::descriptor()->file(),
                                         v1::GetJobUseRequest::descriptor()->file(),
                                         v1::GetKpiRequest::descriptor()->file(),
                                         v1::ListAlertsRequest::descriptor()->file(),
                                         v1::ListPricesRequest::descriptor()->file(),
                                         v1::GetUsageRequest::descriptor()->file(),
                                         v1::ListBudgetsRequest::descriptor()->file(),
                                         v1::GetAdviceRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) found.push_back(file->service(i));
  }
  return found;
}

}  // namespace gpu_platform::api
