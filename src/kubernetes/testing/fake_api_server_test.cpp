#include "kubernetes/testing/fake_api_server.h"

#include <gtest/gtest.h>

#include "kubernetes/testing/json_access.h"
#include "kubernetes/testing/plain_client_test.h"

namespace gpu_platform::kubernetes {

namespace {

using nlohmann::json;

constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kResourceClaims =
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
constexpr const char* kMerge = "application/merge-patch+json";

json pod(const std::string& name, const json& labels = json::object()) {
  json object = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  object["metadata"] = {{"name", name}, {"labels", labels}};
  object["spec"]["containers"] = json::array({{{"name", "main"}, {"image", "i"}}});
  return object;
}

json gated_pod(const std::string& name) {
  json object = pod(name);
  object["spec"]["schedulingGates"] = json::array({{{"name", "g"}}});
  return object;
}

json map(const std::string& name, const std::string& value = "v") {
  return {{"metadata", {{"name", name}}}, {"data", {{"k", value}}}};
}

json binding(const std::string& node) {
  return {{"target", {{"kind", "Node"}, {"name", node}}}};
}

class FakeApiServerTest : public ::testing::Test {
 protected:
  // The body of a call that must succeed.
  json done(const std::string& method, const std::string& target, const json& body = nullptr,
            const std::string& type = kMerge) {
    const PlainClient::Answer answer = client_.call(method, target, body, type);
    EXPECT_TRUE(answer.status == 200 || answer.status == 201)
        << method << " " << target << ": " << answer.body;
    return answer.json();
  }
  json bound_pod(const std::string& name, json object = nullptr) {
    done("POST", kPods, object.is_null() ? pod(name) : object);
    done("POST", std::string(kPods) + "/" + name + "/binding", binding("n1"));
    return done("GET", std::string(kPods) + "/" + name);
  }
  std::vector<std::string> names(const std::string& target) {
    std::vector<std::string> found;
    const json list = done("GET", target);
    for (const json& item : value_at(list, "/items")) {
      found.push_back(text_at(item, "/metadata/name"));
    }
    return found;
  }
  // "TYPE name" of the next event.
  static std::string next(PlainClient& watch) {
    const json event = watch.next_event();
    if (event.is_null()) return "end";
    return text_at(event, "/type") + " " + text_at(event, "/object/metadata/name");
  }
  std::string watch_from_now(const std::string& collection) const {
    return collection + "?watch=1&resourceVersion=" + std::to_string(server_.version());
  }

  FakeApiServer server_;
  PlainClient client_{server_.port()};
};

using Names = std::vector<std::string>;
using What = Misbehaviour::What;
using Which = Misbehaviour::Which;

// ---- Objects ----

TEST_F(FakeApiServerTest, GivesANewObjectItsUidTimeAndVersion) {
  const PlainClient::Answer answer = client_.call("POST", kPods, pod("a"));
  EXPECT_EQ(answer.status, 201);
  const json made = answer.json();
  EXPECT_EQ(made["kind"], "Pod");
  EXPECT_EQ(made["apiVersion"], "v1");
  EXPECT_EQ(made["metadata"]["namespace"], "default");
  EXPECT_EQ(text_at(made, "/metadata/uid").size(), 36u);
  EXPECT_TRUE(text_at(made, "/metadata/creationTimestamp").ends_with("Z"));
  EXPECT_EQ(text_at(made, "/metadata/resourceVersion"), std::to_string(server_.version()));
  EXPECT_EQ(made["status"]["phase"], "Pending");
  EXPECT_EQ(done("GET", std::string(kPods) + "/a"), made);
}

TEST_F(FakeApiServerTest, RefusesAnObjectThatExistsAndOneThatDoesNot) {
  done("POST", kMaps, map("a"));
  const auto twice = client_.call("POST", kMaps, map("a"));
  EXPECT_EQ(twice.status, 409);
  EXPECT_EQ(twice.reason(), "AlreadyExists");
  EXPECT_EQ(twice.message(), "configmaps \"a\" already exists");
  const auto none = client_.get(std::string(kMaps) + "/b");
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(none.reason(), "NotFound");
  EXPECT_EQ(none.json()["details"]["name"], "b");
  EXPECT_EQ(client_.call("POST", "/api/v1/namespaces/nowhere/configmaps", map("a")).message(),
            "namespaces \"nowhere\" not found");
}

TEST_F(FakeApiServerTest, RefusesNamesThatAreNoSubdomain) {
  EXPECT_EQ(client_.call("POST", kMaps, map("A_b")).status, 422);
  EXPECT_EQ(client_.call("POST", kMaps, map("")).status, 422);
}

TEST_F(FakeApiServerTest, ListsWithoutKindsAndSelectsByLabelsAndFields) {
  done("POST", kPods, pod("a", {{"app", "x"}, {"tier", "1"}}));
  done("POST", kPods, pod("b", {{"app", "y"}}));
  bound_pod("c");
  const json list = done("GET", kPods);
  EXPECT_EQ(list["kind"], "PodList");
  EXPECT_EQ(text_at(list, "/metadata/resourceVersion"), std::to_string(server_.version()));
  EXPECT_FALSE(list["items"][0].contains("kind"));
  const auto labelled = [&](const std::string& selector) {
    return names(std::string(kPods) + "?labelSelector=" + selector);
  };
  EXPECT_EQ(labelled("app%3Dx"), Names{"a"});
  EXPECT_EQ(labelled("app!%3Dx"), (Names{"b", "c"}));
  EXPECT_EQ(labelled("app%20in%20(x,y)"), (Names{"a", "b"}));
  EXPECT_EQ(labelled("app%20notin%20(x)"), (Names{"b", "c"}));
  EXPECT_EQ(labelled("app,!tier"), Names{"b"});
  const auto fielded = [&](const std::string& selector) {
    return names("/api/v1/pods?fieldSelector=" + selector);
  };
  EXPECT_EQ(fielded("spec.nodeName%3Dn1"), Names{"c"});
  EXPECT_EQ(fielded("spec.nodeName!%3D,status.phase!%3DFailed"), Names{"c"});
  EXPECT_EQ(fielded("metadata.name%3Db"), Names{"b"});
  EXPECT_EQ(client_.get("/api/v1/pods?fieldSelector=spec.color%3Dred").status, 400);
  EXPECT_EQ(client_.get("/api/v1/pods?labelSelector=a%20b%20c").status, 400);
}

TEST_F(FakeApiServerTest, PagesOfAListHaveOneVersion) {
  for (const char* name : {"a", "b", "c"}) done("POST", kMaps, map(name));
  const std::string target = std::string(kMaps) + "?limit=2";
  const json first = done("GET", target);
  EXPECT_EQ(first["metadata"]["remainingItemCount"], 1);
  done("POST", kMaps, map("d"));
  done("DELETE", std::string(kMaps) + "/c");
  const json second = done("GET", target + "&continue=" + text_at(first, "/metadata/continue"));
  ASSERT_EQ(second["items"].size(), 1u);
  EXPECT_EQ(second["items"][0]["metadata"]["name"], "c");
  EXPECT_EQ(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
  EXPECT_FALSE(second["metadata"].contains("continue"));
}

TEST_F(FakeApiServerTest, RefusesAReplacementOfAnOldVersion) {
  const json old = done("POST", kMaps, map("a"));
  json changed = old;
  changed["data"]["k"] = "w";
  done("PUT", std::string(kMaps) + "/a", changed);
  const auto stale = client_.call("PUT", std::string(kMaps) + "/a", changed);
  EXPECT_EQ(stale.status, 409);
  EXPECT_EQ(stale.reason(), "Conflict");
  EXPECT_EQ(stale.message(),
            "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; "
            "please apply your changes to the latest version and try again");
}

TEST_F(FakeApiServerTest, AChangeToTheSameIsNoChange) {
  done("POST", kMaps, map("a"));
  const std::uint64_t before = server_.version();
  done("PATCH", std::string(kMaps) + "/a", {{"data", {{"k", "v"}}}});
  EXPECT_EQ(server_.version(), before);
}

TEST_F(FakeApiServerTest, PatchesMergeAndTest) {
  done("POST", kMaps, map("a"));
  const std::string target = std::string(kMaps) + "/a";
  const json merged = done("PATCH", target, {{"data", {{"k", nullptr}, {"n", "1"}}}});
  EXPECT_EQ(merged["data"], json({{"n", "1"}}));
  const json test = {{"op", "test"}, {"path", "/data/n"}, {"value", "2"}};
  const auto failed =
      client_.call("PATCH", target, json::array({test}), "application/json-patch+json");
  EXPECT_EQ(failed.status, 422);
  EXPECT_EQ(failed.message(), "the server rejected our request due to an error in our request");
  const json replace = {{"op", "replace"}, {"path", "/data/n"}, {"value", "3"}};
  EXPECT_EQ(
      done("PATCH", target, json::array({replace}), "application/json-patch+json")["data"]["n"],
      "3");
  EXPECT_EQ(client_.call("PATCH", target, json::object(), "text/plain").status, 415);
  EXPECT_EQ(client_.call("PATCH", target, {{"metadata", {{"uid", "x"}}}}, kMerge).status, 409);
}

TEST_F(FakeApiServerTest, StatusAndSpecChangeBySeparateCallsAlone) {
  done("POST", kPods, pod("a"));
  const std::string target = std::string(kPods) + "/a";
  const json patch = {{"metadata", {{"labels", {{"l", "1"}}}}}, {"status", {{"phase", "Failed"}}}};
  json now = done("PATCH", target, patch);
  EXPECT_EQ(now["status"]["phase"], "Pending");
  EXPECT_EQ(now["metadata"]["labels"]["l"], "1");
  json status = patch;
  status["metadata"]["labels"]["l"] = "2";
  now = done("PATCH", target + "/status", status);
  EXPECT_EQ(now["status"]["phase"], "Failed");
  EXPECT_EQ(now["metadata"]["labels"]["l"], "1");
}

// ---- Deletion ----

TEST_F(FakeApiServerTest, DeletesAnUnboundPodAtOnceAndABoundOneAfterItsGrace) {
  done("POST", kPods, pod("a"));
  done("DELETE", std::string(kPods) + "/a");
  EXPECT_EQ(client_.get(std::string(kPods) + "/a").status, 404);
  bound_pod("b");
  const std::string target = std::string(kPods) + "/b";
  const json deleted = done("DELETE", target + "?gracePeriodSeconds=7");
  EXPECT_EQ(deleted["metadata"]["deletionGracePeriodSeconds"], 7);
  EXPECT_TRUE(deleted["metadata"].contains("deletionTimestamp"));
  // A repetition may hasten it, but not delay it.
  EXPECT_EQ(done("DELETE", target,
                 {{"gracePeriodSeconds", 60}})["metadata"]["deletionGracePeriodSeconds"],
            7);
  done("DELETE", target, {{"gracePeriodSeconds", 0}});
  EXPECT_EQ(client_.get(target).status, 404);
}

TEST_F(FakeApiServerTest, AFinalizerKeepsAnObjectUntilItGoes) {
  json object = pod("a");
  object["metadata"]["finalizers"] = {"x/y"};
  bound_pod("a", object);
  const std::string target = std::string(kPods) + "/a";
  done("DELETE", target, {{"gracePeriodSeconds", 0}});
  EXPECT_TRUE(done("GET", target)["metadata"].contains("deletionTimestamp"));
  const json more = {{"metadata", {{"finalizers", {"x/y", "x/z"}}}}};
  EXPECT_EQ(client_.call("PATCH", target, more, kMerge).status, 422);
  done("PATCH", target, {{"metadata", {{"finalizers", nullptr}}}});
  EXPECT_EQ(client_.get(target).status, 404);
}

TEST_F(FakeApiServerTest, APodWhoseGraceRunsOutlivesItsLastFinalizer) {
  json object = pod("a");
  object["metadata"]["finalizers"] = {"x/y"};
  bound_pod("a", object);
  const std::string target = std::string(kPods) + "/a";
  done("DELETE", target);
  done("PATCH", target, {{"metadata", {{"finalizers", nullptr}}}});
  EXPECT_EQ(client_.get(target).status, 200);
  done("DELETE", target, {{"gracePeriodSeconds", 0}});
  EXPECT_EQ(client_.get(target).status, 404);
}

TEST_F(FakeApiServerTest, DeletesNoObjectOfAnotherUid) {
  done("POST", kMaps, map("a"));
  const json options = {{"preconditions", {{"uid", "other"}}}};
  const auto refused = client_.call("DELETE", std::string(kMaps) + "/a", options);
  EXPECT_EQ(refused.status, 409);
  EXPECT_NE(refused.message().find("does not match the UID in record"), std::string::npos);
  EXPECT_EQ(client_.get(std::string(kMaps) + "/a").status, 200);
}

// ---- Pods and ResourceClaims ----

TEST_F(FakeApiServerTest, BindsAPodOnceAndOnlyWithoutGates) {
  done("POST", kPods, gated_pod("a"));
  const std::string target = std::string(kPods) + "/a";
  EXPECT_EQ(text_at(done("GET", target), "/status/conditions/0/reason"), "SchedulingGated");
  const auto gated = client_.call("POST", target + "/binding", binding("n1"));
  EXPECT_EQ(gated.status, 409);
  EXPECT_EQ(gated.message(),
            "Operation cannot be fulfilled on pods/binding \"a\": pod a has non-empty "
            ".spec.schedulingGates");
  done("PATCH", target, {{"spec", {{"schedulingGates", nullptr}}}});
  json other = binding("n1");
  other["metadata"]["uid"] = "other";
  EXPECT_EQ(client_.call("POST", target + "/binding", other).status, 409);
  EXPECT_EQ(client_.call("POST", target + "/binding", binding("n1")).json()["status"], "Success");
  EXPECT_EQ(done("GET", target)["spec"]["nodeName"], "n1");
  EXPECT_EQ(client_.call("POST", target + "/binding", binding("n2")).message(),
            "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to "
            "node \"n1\"");
}

TEST_F(FakeApiServerTest, AdmitsNoNewGateAndNoOtherResourceClaimOfAPod) {
  done("POST", kPods, gated_pod("a"));
  const std::string target = std::string(kPods) + "/a";
  const json gates = json::array({{{"name", "g"}}, {{"name", "late"}}});
  const auto late = client_.call("PATCH", target, {{"spec", {{"schedulingGates", gates}}}}, kMerge);
  EXPECT_EQ(late.status, 422);
  EXPECT_NE(late.message().find("found new scheduling gate 'late'"), std::string::npos);
  json other;
  other["spec"]["resourceClaims"] = json::array({{{"name", "g"}, {"resourceClaimName", "b"}}});
  EXPECT_EQ(client_.call("PATCH", target, other, kMerge).status, 422);
  done("PATCH", target, {{"spec", {{"nodeSelector", {{"a", "b"}}}}}});
  done("PATCH", target, {{"spec", {{"schedulingGates", nullptr}}}});
  EXPECT_EQ(client_.call("PATCH", target, {{"spec", {{"nodeSelector", nullptr}}}}, kMerge).status,
            422);
}

TEST_F(FakeApiServerTest, EvictionDeletesWithACondition) {
  bound_pod("a");
  const std::string target = std::string(kPods) + "/a";
  const auto evicted = client_.call("POST", target + "/eviction", json::object());
  EXPECT_EQ(evicted.status, 201);
  const json now = done("GET", target);
  EXPECT_EQ(now["metadata"]["deletionGracePeriodSeconds"], 30);
  EXPECT_EQ(text_at(now, "/status/conditions/1/reason"), "EvictionByEvictionAPI");
}

TEST_F(FakeApiServerTest, AResourceClaimKeepsItsSpecAndItsAllocation) {
  json object = {{"metadata", {{"name", "c"}}}};
  object["spec"]["devices"]["requests"] = json::array({{{"name", "gpu"}}});
  done("POST", kResourceClaims, object);
  const std::string target = std::string(kResourceClaims) + "/c";
  const json spec = {{"spec", {{"devices", {{"requests", json::array()}}}}}};
  const auto changed = client_.call("PATCH", target, spec, kMerge);
  EXPECT_EQ(changed.status, 422);
  EXPECT_TRUE(changed.message().ends_with("field is immutable")) << changed.message();
  const auto allocation = [](const char* device) {
    json status;
    status["status"]["allocation"]["devices"]["results"] = json::array({{{"device", device}}});
    status["status"]["reservedFor"] = json::array({{{"resource", "pods"}, {"uid", "u"}}});
    return status;
  };
  json unallocated = allocation("gpu-0");
  unallocated["status"].erase("allocation");
  EXPECT_EQ(client_.call("PATCH", target + "/status", unallocated, kMerge).status, 422);
  done("PATCH", target + "/status", allocation("gpu-0"));
  EXPECT_EQ(client_.call("PATCH", target + "/status", allocation("gpu-1"), kMerge).status, 422);
  done("PATCH", target + "/status", {{"status", nullptr}});
  server_.set_claim_binding_right(false);
  const auto refused = client_.call("PATCH", target + "/status", allocation("gpu-1"), kMerge);
  EXPECT_EQ(refused.status, 422);
  EXPECT_NE(refused.message().find("requires resource=\"resourceclaims/binding\""),
            std::string::npos);
}

// ---- Watches ----

TEST_F(FakeApiServerTest, AWatchGoesOnFromItsVersion) {
  done("POST", kMaps, map("before"));
  const std::string target = watch_from_now(kMaps);
  done("POST", kMaps, map("a"));
  PlainClient watch(server_.port());
  ASSERT_EQ(watch.open(target), 200);
  EXPECT_EQ(next(watch), "ADDED a");
  done("PATCH", std::string(kMaps) + "/a", {{"data", {{"k", "w"}}}});
  const json changed = watch.next_event();
  EXPECT_EQ(changed["type"], "MODIFIED");
  EXPECT_EQ(changed["object"]["kind"], "ConfigMap");
  EXPECT_EQ(changed["object"]["data"]["k"], "w");
  done("DELETE", std::string(kMaps) + "/a");
  const json deleted = watch.next_event();
  EXPECT_EQ(deleted["type"], "DELETED");
  EXPECT_EQ(text_at(deleted, "/object/metadata/resourceVersion"),
            std::to_string(server_.version()));
}

TEST_F(FakeApiServerTest, AWatchWithoutAVersionBeginsWithWhatIsThere) {
  done("POST", kMaps, map("a"));
  PlainClient watch(server_.port());
  ASSERT_EQ(watch.open(std::string(kMaps) + "?watch=true&sendInitialEvents=true"), 200);
  EXPECT_EQ(next(watch), "ADDED a");
  const json mark = watch.next_event();
  EXPECT_EQ(mark["type"], "BOOKMARK");
  EXPECT_EQ(mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

TEST_F(FakeApiServerTest, ObjectsEnterAndLeaveTheSelectionOfAWatch) {
  PlainClient watch(server_.port());
  ASSERT_EQ(watch.open(watch_from_now("/api/v1/pods") + "&fieldSelector=spec.nodeName!%3D"), 200);
  json object = pod("a", {{"l", "1"}});
  PlainClient labelled(server_.port());
  ASSERT_EQ(labelled.open(watch_from_now(kPods) + "&labelSelector=l%3D1"), 200);
  bound_pod("a", object);
  EXPECT_EQ(next(watch), "ADDED a");
  EXPECT_EQ(next(labelled), "ADDED a");
  EXPECT_EQ(next(labelled), "MODIFIED a");
  done("PATCH", std::string(kPods) + "/a", {{"metadata", {{"labels", {{"l", "2"}}}}}});
  const json left = labelled.next_event();
  EXPECT_EQ(left["type"], "DELETED");
  EXPECT_EQ(left["object"]["metadata"]["labels"]["l"], "1");
  EXPECT_EQ(text_at(left, "/object/metadata/resourceVersion"), std::to_string(server_.version()));
  EXPECT_EQ(next(watch), "MODIFIED a");
}

TEST_F(FakeApiServerTest, AWatchFromAVersionToComeTellsNothingBeforeIt) {
  const std::string version = std::to_string(server_.version() + 2);
  PlainClient watch(server_.port());
  ASSERT_EQ(watch.open(std::string(kMaps) + "?watch=1&resourceVersion=" + version), 200);
  for (const char* name : {"a", "b", "c"}) done("POST", kMaps, map(name));
  EXPECT_EQ(next(watch), "ADDED c");
}

TEST_F(FakeApiServerTest, SendsBookmarksWhenAsked) {
  PlainClient watch(server_.port());
  ASSERT_EQ(watch.open(watch_from_now(kMaps)), 200);
  done("POST", kPods, pod("a"));
  server_.send_bookmarks();
  const json mark = watch.next_event();
  EXPECT_EQ(mark["type"], "BOOKMARK");
  EXPECT_EQ(text_at(mark, "/object/metadata/resourceVersion"), std::to_string(server_.version()));
}

TEST_F(FakeApiServerTest, ATimedWatchEndsCleanlyWithABookmark) {
  PlainClient watch(server_.port());
  const std::string version = std::to_string(server_.version());
  ASSERT_EQ(watch.open(watch_from_now(kMaps) + "&allowWatchBookmarks=true&timeoutSeconds=1"), 200);
  const json mark = watch.next_event();
  EXPECT_EQ(mark["type"], "BOOKMARK");
  EXPECT_EQ(text_at(mark, "/object/metadata/resourceVersion"), version);
  EXPECT_EQ(next(watch), "end");
  EXPECT_TRUE(watch.is_clean_end());
  // The connection serves on.
  EXPECT_EQ(watch.get("/version").status, 200);
}

// ---- Logs ----

TEST_F(FakeApiServerTest, AFollowedLogComesAsItIsWrittenAndEndsWithItsPod) {
  bound_pod("a");
  const std::string target = std::string(kPods) + "/a";
  const auto waiting = client_.get(target + "/log");
  EXPECT_EQ(waiting.status, 400);
  EXPECT_EQ(waiting.message(),
            "container \"main\" in pod \"a\" is waiting to start: ContainerCreating");
  const json state = {{"name", "main"}, {"state", {{"running", json::object()}}}};
  done("PATCH", target + "/status",
       {{"status", {{"phase", "Running"}, {"containerStatuses", json::array({state})}}}});
  server_.append_log("default", "a", "one\ntwo\n");
  PlainClient log(server_.port());
  ASSERT_EQ(log.open(target + "/log?follow=true&tailLines=1"), 200);
  EXPECT_EQ(log.next_line(), "two");
  server_.append_log("default", "a", "thr");
  server_.append_log("default", "a", "ee\n");
  EXPECT_EQ(log.next_line(), "three");
  done("PATCH", target + "/status", {{"status", {{"phase", "Succeeded"}}}});
  EXPECT_EQ(log.next_line(), std::nullopt);
  EXPECT_TRUE(log.is_clean_end());
  EXPECT_EQ(client_.get(target + "/log?limitBytes=5").body, "one\nt");
}

TEST_F(FakeApiServerTest, ALogGoesOnAfterTheTimeOfALine) {
  bound_pod("a");
  const std::string target = std::string(kPods) + "/a";
  done("PATCH", target + "/status", {{"status", {{"phase", "Failed"}}}});
  server_.append_log("default", "a", "one\ntwo\nthree\n");
  const std::string all = client_.get(target + "/log?timestamps=true").body;
  const std::string second = all.substr(all.find('\n') + 1);
  const std::string since = second.substr(0, second.find(' '));
  EXPECT_EQ(client_.get(target + "/log?sinceTime=" + since).body, "two\nthree\n");
}

// ---- Misbehaviour ----

TEST_F(FakeApiServerTest, EndsWatchesWithoutAWordAndWithAnError) {
  PlainClient watch(server_.port());
  ASSERT_EQ(watch.open(watch_from_now(kMaps)), 200);
  EXPECT_EQ(server_.watches(kMaps), 1u);
  EXPECT_EQ(server_.watches(kPods), 0u);
  server_.end_watches();
  EXPECT_EQ(next(watch), "end");
  EXPECT_TRUE(watch.is_clean_end());
  EXPECT_EQ(server_.watches(kMaps), 0u);
  ASSERT_EQ(watch.open(watch_from_now(kMaps)), 200);
  server_.expire_watches();
  const json error = watch.next_event();
  EXPECT_EQ(error["type"], "ERROR");
  EXPECT_EQ(error["object"]["code"], 410);
  EXPECT_EQ(error["object"]["reason"], "Expired");
  EXPECT_EQ(next(watch), "end");
}

TEST_F(FakeApiServerTest, ForgetsThePast) {
  const std::string old = watch_from_now(kMaps);
  for (const char* name : {"a", "b"}) done("POST", kMaps, map(name));
  const json page = done("GET", std::string(kMaps) + "?limit=1");
  done("POST", kMaps, map("c"));
  server_.compact(FakeApiServer::ExpiredAs::kAnswer);
  EXPECT_EQ(client_.get(old).status, 410);
  server_.compact(FakeApiServer::ExpiredAs::kEvent);
  PlainClient watch(server_.port());
  ASSERT_EQ(watch.open(old), 200);
  EXPECT_EQ(watch.next_event()["object"]["code"], 410);
  const std::string next_page = std::string(kMaps) + "?limit=5&continue=";
  const auto expired = client_.get(next_page + text_at(page, "/metadata/continue"));
  EXPECT_EQ(expired.status, 410);
  EXPECT_EQ(names(next_page + text_at(expired.json(), "/metadata/continue")), (Names{"b", "c"}));
}

TEST_F(FakeApiServerTest, AnswersWithErrorsAsOftenAsAsked) {
  server_.misbehave({.which = Which::kWrites, .times = 2, .error = {.code = 409}});
  EXPECT_EQ(client_.get(kMaps).status, 200);
  EXPECT_EQ(client_.call("POST", kMaps, map("a")).reason(), "Conflict");
  EXPECT_EQ(client_.call("POST", kMaps, map("a")).status, 409);
  EXPECT_EQ(client_.call("POST", kMaps, map("a")).status, 201);
  server_.misbehave(
      {.path = std::string(kMaps) + "/*", .error = {.code = 429}, .retry_after_s = 3});
  EXPECT_EQ(client_.get(kMaps).status, 200);
  const auto busy = client_.get(std::string(kMaps) + "/a");
  EXPECT_EQ(busy.status, 429);
  EXPECT_EQ(busy.retry_after, "3");
  server_.misbehave({.times = 0, .error = {.code = 503}});
  EXPECT_EQ(client_.get(kMaps).status, 503);
  EXPECT_EQ(client_.get(kMaps).status, 503);
  server_.heal();
  EXPECT_EQ(client_.get(kMaps).status, 200);
}

TEST_F(FakeApiServerTest, ForbidsInTheServersWords) {
  server_.forbid("GET", "/api/v1/namespaces/default/secrets");
  const auto refused = client_.get("/api/v1/namespaces/default/secrets");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.message(),
            "secrets is forbidden: User \"gpu-platform\" cannot list resource \"secrets\" in API "
            "group \"\" in the namespace \"default\"");
}

TEST_F(FakeApiServerTest, ClosesBeforeOrAfterAWriteIsDone) {
  server_.misbehave({.what = What::kCloseBefore, .which = Which::kWrites});
  EXPECT_EQ(client_.call("POST", kMaps, map("a")).status, 0);
  EXPECT_TRUE(server_.object(std::string(kMaps) + "/a").is_null());
  server_.misbehave({.what = What::kCloseAfter, .which = Which::kWrites});
  EXPECT_EQ(client_.call("POST", kMaps, map("a")).status, 0);
  EXPECT_FALSE(server_.object(std::string(kMaps) + "/a").is_null());
}

TEST_F(FakeApiServerTest, HangsUntilItsConnectionsAreDropped) {
  server_.misbehave({.what = What::kHang});
  const auto hung =
      client_.call("GET", kMaps, nullptr, "application/json", std::chrono::milliseconds(50));
  EXPECT_EQ(hung.status, 0);
  EXPECT_TRUE(hung.is_timeout);
  EXPECT_EQ(client_.get(kMaps).status, 200);
  PlainClient watch(server_.port());
  ASSERT_EQ(watch.open(watch_from_now(kMaps)), 200);
  server_.drop_connections();
  EXPECT_EQ(next(watch), "end");
  EXPECT_FALSE(watch.is_clean_end());
}

TEST_F(FakeApiServerTest, ExpiresAWatchThatBegins) {
  server_.misbehave({.what = What::kExpireInWatch});
  server_.misbehave({.which = Which::kWatches, .error = {.code = 410}});
  EXPECT_EQ(client_.get(kMaps).status, 200);
  EXPECT_EQ(client_.get(watch_from_now(kMaps)).reason(), "Expired");
  PlainClient watch(server_.port());
  ASSERT_EQ(watch.open(watch_from_now(kMaps)), 200);
  EXPECT_EQ(watch.next_event()["type"], "ERROR");
  EXPECT_EQ(next(watch), "end");
}

TEST_F(FakeApiServerTest, DoublesAndReordersEvents) {
  PlainClient watch(server_.port());
  ASSERT_EQ(watch.open(watch_from_now(kMaps)), 200);
  server_.hold_events();
  done("POST", kMaps, map("a"));
  done("POST", kMaps, map("b"));
  done("DELETE", std::string(kMaps) + "/a");
  server_.release_events(FakeApiServer::EventOrder::kReversed);
  EXPECT_EQ(next(watch), "ADDED b");
  EXPECT_EQ(next(watch), "ADDED a");
  EXPECT_EQ(next(watch), "DELETED a");
  server_.double_events(true);
  done("POST", kMaps, map("c"));
  EXPECT_EQ(next(watch), "ADDED c");
  EXPECT_EQ(next(watch), "ADDED c");
}

TEST_F(FakeApiServerTest, TellsEventsThatAreOld) {
  done("POST", kMaps, map("a", "old"));
  done("PATCH", std::string(kMaps) + "/a", {{"data", {{"k", "new"}}}});
  const json old = server_.history(std::string(kMaps) + "/a").front();
  PlainClient watch(server_.port());
  ASSERT_EQ(watch.open(watch_from_now(kMaps)), 200);
  server_.send_event(kMaps, "MODIFIED", old);
  EXPECT_EQ(watch.next_event()["object"]["data"]["k"], "old");
  server_.send_event(kMaps, "MODIFIED", old, FakeApiServer::SendTo::kLaterWatches);
  PlainClient later(server_.port());
  ASSERT_EQ(later.open(watch_from_now(kMaps)), 200);
  EXPECT_EQ(later.next_event()["object"]["data"]["k"], "old");
}

TEST_F(FakeApiServerTest, GoesAwayAndComesBackWithItsObjects) {
  done("POST", kMaps, map("a"));
  server_.go_away();
  EXPECT_EQ(client_.get(kMaps).status, 0);
  EXPECT_FALSE(client_.can_connect());
  server_.come_back();
  EXPECT_EQ(names(kMaps), Names{"a"});
}

TEST_F(FakeApiServerTest, RecordsRequestsAndTheirBodies) {
  done("POST", kMaps, map("a"));
  done("GET", std::string(kMaps) + "/a?x=%2Fy");
  EXPECT_EQ(server_.count("POST", kMaps), 1u);
  EXPECT_EQ(server_.count("", std::string(kMaps) + "*"), 2u);
  EXPECT_EQ(server_.count("DELETE", ""), 0u);
  const auto requests = server_.requests();
  EXPECT_EQ(json::parse(requests[0].body, nullptr, false), map("a"));
  EXPECT_EQ(requests[1].query.at("x"), "/y");
}

TEST_F(FakeApiServerTest, ServesNoGroupThatIsSwitchedOff) {
  EXPECT_EQ(client_.get("/apis/resource.k8s.io/v1").json()["kind"], "APIResourceList");
  server_.set_served("resource.k8s.io/v1", false);
  EXPECT_EQ(client_.get("/apis/resource.k8s.io/v1").status, 404);
  EXPECT_EQ(client_.get(kResourceClaims).status, 404);
}

TEST_F(FakeApiServerTest, HasDeviceTaintRulesInOneVersionIfInAny) {
  const std::string group = "/apis/resource.k8s.io/";
  EXPECT_EQ(client_.get(group + "v1beta2").status, 404);
  EXPECT_EQ(client_.get(group + "v1/devicetaintrules").status, 404);
  server_.set_taint_rules("v1beta2");
  const json resources = client_.get(group + "v1beta2").json()["resources"];
  ASSERT_EQ(resources.size(), 1u);
  EXPECT_EQ(resources[0]["name"], "devicetaintrules");
  EXPECT_EQ(client_.get(group + "v1beta2/devicetaintrules").json()["kind"], "DeviceTaintRuleList");
  EXPECT_EQ(client_.get(group + "v1/devicetaintrules").status, 404);
}

}  // namespace

}  // namespace gpu_platform::kubernetes
