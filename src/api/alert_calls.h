#pragma once

#include <string>

#include "api/alert_source.h"
#include "api/changing_call.h"
#include "api/peer.h"
#include "base/result.h"
#include "gpu_platform/v1/alerts.pb.h"
#include "model/audit.h"

namespace gpu_platform::api {

struct CallContext;

// Alerts, rules, silences and channels: the calls of AlertService. What they change is in the audit
// trail before it is done. Safe from any thread.
class AlertCalls {
 public:
  explicit AlertCalls(const CallContext& context) : context_(context) {}

  base::Result<v1::ListAlertsResponse> list(const v1::ListAlertsRequest& request,
                                            const Peer& peer) const;
  base::Result<v1::Alert> get(const v1::GetAlertRequest& request, const Peer& peer) const;
  base::Result<v1::ListAlertRulesResponse> rules(const v1::ListAlertRulesRequest& request) const;
  base::Result<v1::ListSilencesResponse> silences(const v1::ListSilencesRequest& request,
                                                  const Peer& peer) const;
  base::Result<v1::ListAlertChannelsResponse> channels(
      const v1::ListAlertChannelsRequest& request) const;

  void acknowledge(const v1::AcknowledgeAlertRequest& request, const Peer& peer, Resume resume,
                   Done<v1::Alert> done) const;
  void create_silence(const v1::CreateSilenceRequest& request, const Peer& peer, Resume resume,
                      Done<v1::Silence> done) const;
  void end_silence(const v1::EndSilenceRequest& request, const Peer& peer, Resume resume,
                   Done<v1::Silence> done) const;
  void test(const v1::TestAlertChannelRequest& request, const Peer& peer, Resume resume,
            Done<v1::TestAlertChannelResponse> done) const;

 private:
  base::Result<AlertSource*> source() const;
  base::Result<alerts::Alert> find(const std::string& id, const Peer& peer) const;
  base::Status check_may_silence(const AlertSource& source, const alerts::Silence& silence,
                                 const Peer& peer) const;
  void record(model::AuditAction action, std::string target, const Peer& peer, Resume resume,
              std::function<void(base::Status)> done) const;

  const CallContext& context_;
};

}  // namespace gpu_platform::api
