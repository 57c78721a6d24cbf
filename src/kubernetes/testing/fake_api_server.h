#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "kubernetes/testing/api_calls.h"
#include "kubernetes/testing/api_request.h"
#include "kubernetes/testing/object_store.h"

// An API server for tests: HTTP/1.1 over plain TCP on 127.0.0.1, with a store in memory. It answers
// as Kubernetes 1.36 does what the platform asks for, and misbehaves when a test wants it to.
// pod_runner.h has the parts of a cluster that run pods.
//
// What it does: objects of any group, version and resource; get, list in pages and at old versions,
// watch, create, replace, patch (a strategic one merges conditions by type), apply (as a merge),
// delete with grace, preconditions and finalizers; the subresources status, binding, eviction and
// log; the rules of pods and ResourceClaims that object_rules.h has; /version, /readyz and the
// discovery of resource.k8s.io. What it does not: authentication, CEL, schemas, quotas, field
// managers, and disruption budgets (have it answer an eviction with 429 instead). The namespaces
// "default" and "kube-system" are there; others must be made before objects in them.
//
// Thread: all methods from any thread. Nothing here waits for a client: what a method changes is in
// the next answer, and a watch tells it soon after. Paths are those of the API:
// "/api/v1/namespaces/default/pods/a" is an object, without "/a" a collection.

namespace gpu_platform::kubernetes {

// A request as it came, before it was changed.
struct RecordedRequest {
  std::string method;
  std::string path;  // without its query, decoded
  std::map<std::string, std::string> query;
  std::string content_type;
  std::string body;
};

// What goes wrong, with which requests, and how often.
struct Misbehaviour {
  enum class What : std::uint8_t {
    kAnswerError,    // `error` is the answer
    kExpireInWatch,  // a watch begins, tells an ERROR event of code 410 and ends
    kHang,           // the request is read and never answered
    kCloseBefore,  // the connection ends; nothing was done. A client that has used this connection
                   // before may send its request again by itself: it takes `times` = 2 to be seen
    kCloseAfter,   // the connection ends; what was asked for was done
  };
  enum class Which : std::uint8_t { kAll, kReads, kWrites, kWatches, kNextPages };
  What what = What::kAnswerError;
  Which which = Which::kAll;
  std::string method = "";  // empty: any
  std::string path = "";    // exactly; with "*" at its end: all that begin so; empty: any
  std::uint32_t times = 1;  // 0: until heal()
  ApiError error = {};      // an empty message becomes the server's for the code and the request
  std::uint32_t retry_after_s = 0;  // a header of the error; 0: none
};

class FakeApiServer {
 public:
  FakeApiServer();
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  std::uint16_t port() const;
  std::string url() const;         // "http://127.0.0.1:PORT"
  std::string kubeconfig() const;  // the text of a kubeconfig file, with a token of no worth

  // ---- Objects ----

  // What another client's request does, but for watches and logs. It is not recorded and never
  // misbehaves.
  ApiAnswer call(const std::string& method, const std::string& target,
                 const nlohmann::json& body = nullptr,
                 const std::string& content_type = "application/merge-patch+json");
  nlohmann::json object(const std::string& path) const;  // null: there is none
  std::vector<nlohmann::json> objects(const std::string& collection) const;
  // All states that an object of this path had, oldest first. A deletion's is the last one.
  std::vector<nlohmann::json> history(const std::string& path) const;
  std::uint64_t version() const;  // the newest resourceVersion
  // Calls `change` with the store locked, as a part of the cluster would change it.
  void change(const std::function<void(ApiCalls& calls, ObjectStore& store)>& change);

  // ---- Logs ----

  // Appends to a pod's log; readers that follow it get it.
  void append_log(const std::string& namespace_name, const std::string& pod, std::string_view text);
  void clear_log(const std::string& namespace_name, const std::string& pod);

  // ---- Channels into pods ----

  // Requests for a WebSocket go on to a server at this port of 127.0.0.1, which plays the pods.
  void pass_channels_to(std::uint16_t port);

  // ---- Requests ----

  std::vector<RecordedRequest> requests() const;  // in order
  // Those of a method (empty: any) and a path as in Misbehaviour.
  std::size_t count(const std::string& method, const std::string& path) const;
  void forget_requests();

  // ---- Misbehaviour ----

  // Later ones are tried first. One that has happened `times` times is over.
  void misbehave(Misbehaviour misbehaviour);
  // Ends all misbehaviour of misbehave(), whether it has happened or not.
  void heal();
  // What the server says to a client that may not: 403, until heal().
  void forbid(const std::string& method, const std::string& path);
  // A SelfSubjectAccessReview is told that the client lacks this right: "create", "pods/binding".
  // What it then does is carried out nevertheless.
  void lack(const std::string& verb, const std::string& resource);
  // As a client that lacks resourceclaims/binding sees it (422).
  void set_claim_binding_right(bool has_right);
  // Whether there is a group and version: "resource.k8s.io/v1".
  void set_served(const std::string& group_version, bool is_served);
  // The version of resource.k8s.io that has DeviceTaintRules: "v1beta2". Empty, as it is at first:
  // none has.
  void set_taint_rules(const std::string& version);
  // Forgets the past: watches from versions before now end with 410, as an answer or as an event of
  // the watch; pages of lists that began before get 410 with a token for the rest.
  enum class ExpiredAs : std::uint8_t { kAnswer, kEvent };
  void compact(ExpiredAs expired_as);

  // Watches of a collection that are open.
  std::size_t watches(const std::string& collection) const;
  // Ends all watches as a server does that is tired of them: without a word.
  void end_watches();
  // Ends all watches with an ERROR event of code 410.
  void expire_watches();
  // Sends a bookmark on all watches.
  void send_bookmarks();
  // Tells an event that did not happen to the watches of a collection that are open, or to each
  // that begins from now on until heal(). `object` needs no kind.
  enum class SendTo : std::uint8_t { kOpenWatches, kLaterWatches };
  void send_event(const std::string& collection, const std::string& type,
                  const nlohmann::json& object, SendTo to = SendTo::kOpenWatches);
  // Whether watches tell each event twice.
  void double_events(bool is_doubled);
  // Keeps all events back, until release_events() tells them: in their order, or with the objects
  // in the reverse of it. Events of one object never change places.
  void hold_events();
  enum class EventOrder : std::uint8_t { kKept, kReversed };
  void release_events(EventOrder order);

  // Ends all connections, also those that hang.
  void drop_connections();
  // Stops listening and ends all connections; comes back at the same port with the same store. Both
  // return when it is done.
  void go_away();
  void come_back();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpu_platform::kubernetes
