#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "kubernetes/testing/api_request.h"
#include "kubernetes/testing/object_store.h"

// The calls of an API server on a store: all but those whose answers go on (watches and logs).
// Thread: one at a time.

namespace gpu_platform::kubernetes {

class ApiCalls {
 public:
  // `now`: the time for timestamps, as RFC 3339 has it, `seconds` later. The store outlives this.
  using Clock = std::function<std::string(std::int64_t seconds)>;
  ApiCalls(ObjectStore& store, Clock now) : store_(store), now_(std::move(now)) {}

  ApiAnswer handle(const ApiRequest& request);

  // Without the right, allocations and reservations of claims are refused as Kubernetes 1.36
  // refuses them to a client that lacks resourceclaims/binding.
  void set_claim_binding_right(bool has_right) { has_claim_binding_right_ = has_right; }
  // A right that the client lacks, as a SelfSubjectAccessReview is answered: "create", "pods/log".
  void lack(const std::string& verb, const std::string& resource) {
    lacking_.insert({verb, resource});
  }
  // A group and version that is not served is as unknown as any other path: "resource.k8s.io/v1".
  void set_served(const std::string& group_version, bool is_served);
  // The version of resource.k8s.io that has DeviceTaintRules: "v1beta2". Empty: none has.
  void set_taint_rules(const std::string& version) { taint_rules_ = version; }
  bool is_served(const ApiPath& path) const;
  // Pages whose list is older than this version are expired.
  void set_oldest_version(std::uint64_t version) { oldest_version_ = version; }

  // Replaces an object without asking for rights or rules, as the cluster's own parts do. The last
  // finalizer of an object that is being deleted still ends it. Null: there is none.
  ObjectPtr overwrite(const ApiPath& path, nlohmann::json after);

  // The kind of a resource's objects: "Pod".
  std::string kind_of(const ApiPath& path) const;
  // An object as the server shows it: with its kind and apiVersion.
  nlohmann::json shown(const ApiPath& path, const nlohmann::json& object) const;
  std::string now() const { return now_(0); }

 private:
  ApiAnswer discover(const ApiRequest& request) const;
  ApiAnswer review(const ApiRequest& request) const;
  ApiAnswer list(const ApiRequest& request, const ApiPath& path) const;
  ApiAnswer create(const ApiRequest& request, const ApiPath& path);
  ApiAnswer replace(const ApiRequest& request, const ApiPath& path);
  ApiAnswer patch(const ApiRequest& request, const ApiPath& path);
  ApiAnswer change(const ApiPath& path, const nlohmann::json& before, nlohmann::json after);
  ApiAnswer remove(const ApiRequest& request, const ApiPath& path);
  ApiAnswer remove_one(const ApiPath& path, const nlohmann::json& options);
  ApiAnswer bind(const ApiRequest& request, const ApiPath& path);
  ApiAnswer evict(const ApiRequest& request, const ApiPath& path);

  std::optional<ApiAnswer> refuse_versions(const ApiPath& path, const nlohmann::json& before,
                                           const nlohmann::json& after) const;
  std::optional<ApiAnswer> refuse_rights(const ApiPath& path, const nlohmann::json& before,
                                         const nlohmann::json& after) const;
  ApiAnswer not_found(const ApiPath& path) const;
  ApiAnswer conflict(const ApiPath& path, const std::string& why) const;

  ObjectStore& store_;
  Clock now_;
  bool has_claim_binding_right_ = true;
  std::uint64_t oldest_version_ = 0;
  std::uint64_t made_ = 0;  // objects, for their uids
  std::set<std::string> unserved_;
  std::string taint_rules_;
  std::set<std::pair<std::string, std::string>> lacking_;  // verb, resource
  std::map<std::string, std::string> kinds_;               // of resources, as objects have told
};

}  // namespace gpu_platform::kubernetes
