#include "execution/kubernetes/lease/lease.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/utc.h"
#include "execution/kubernetes/api_values.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

// As MicroTime is written.
std::string micro_time(base::Instant now) {
  return base::utc(now, base::Fraction::kMicroseconds);
}

}  // namespace

LeaseState state_of_lease(const Json& lease) {
  return {.holder = std::string(text_at(lease, {"spec", "holderIdentity"})),
          .acquired = std::string(text_at(lease, {"spec", "acquireTime"})),
          .renewed = std::string(text_at(lease, {"spec", "renewTime"})),
          .resource_version = std::string(text_at(lease, {"metadata", "resourceVersion"})),
          .transitions = number_at(lease, {"spec", "leaseTransitions"})};
}

std::string leases_path(const LeaseTerms& terms) {
  return fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases", terms.namespace_name);
}

std::string lease_path(const LeaseTerms& terms) {
  return leases_path(terms) + "/" + terms.name;
}

Json lease_manifest(const LeaseTerms& terms, const LeaseState& before, base::Instant now) {
  Json metadata = {{"name", terms.name}, {"namespace", terms.namespace_name}};
  if (!before.resource_version.empty()) metadata["resourceVersion"] = before.resource_version;
  const bool is_change = !before.holder.empty() && before.holder != terms.identity;
  const bool is_ours = before.holder == terms.identity && !before.acquired.empty();
  return {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", metadata},
          {"spec",
           {{"holderIdentity", terms.identity},
            {"leaseDurationSeconds", base::whole_milliseconds(terms.duration) / 1000},
            {"acquireTime", is_ours ? before.acquired : micro_time(now)},
            {"renewTime", micro_time(now)},
            {"leaseTransitions", before.transitions + (is_change ? 1 : 0)}}}};
}

kubernetes::Request lease_write(const LeaseTerms& terms, const LeaseState& before, bool is_there,
                                base::Instant now) {
  kubernetes::Request request;
  request.method = is_there ? kubernetes::Method::kPut : kubernetes::Method::kPost;
  request.path = is_there ? lease_path(terms) : leases_path(terms);
  request.body = lease_manifest(terms, before, now).dump();
  request.turn = kubernetes::Turn::kAtOnce;
  return request;
}

}  // namespace gpu_platform::execution
