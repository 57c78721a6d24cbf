#include <set>
#include <string>

#include <gmock/gmock.h>

#include "api/rest/server_fixture_test.h"
#include "base/letters.h"
#include "model/job_spec.h"

namespace gpu_platform::api {
namespace {

TEST_F(ServerTest, DescribesItself) {
  start();
  const auto document = parsed(ask("GET", "/v1/openapi.json"));
  EXPECT_EQ(document["openapi"], "3.1.0");
  const auto& submit = document["paths"]["/v1/jobs"]["post"];
  EXPECT_NE(submit["description"].get<std::string>().find("Accepts a job."), std::string::npos);
  EXPECT_TRUE(submit["responses"].contains("201"));
  const auto& schema = document["components"]["schemas"]["JobSpec"]["properties"];
  EXPECT_EQ(schema["gpus"]["maximum"], 65535);
  EXPECT_EQ(schema["labels"]["maxProperties"], 64);
  EXPECT_EQ(submit["requestBody"]["content"]["application/json"]["schema"]["$ref"],
            "#/components/schemas/JobSpec");
  EXPECT_EQ(schema["environment"]["writeOnly"], true);
  EXPECT_FALSE(schema["environment"]["description"].get<std::string>().empty());
  const auto& output =
      document["paths"]["/v1/jobs/{id}/output"]["get"]["responses"]["200"]["content"];
  EXPECT_TRUE(output.contains("text/event-stream"));
  EXPECT_TRUE(output.contains("application/json"));
  // A repeat of a request is answered, too.
  EXPECT_TRUE(submit["responses"].contains("200"));
  EXPECT_TRUE(document["paths"].contains("/metrics"));
  EXPECT_EQ(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
  EXPECT_EQ(output["text/event-stream"]["schema"]["properties"]["data"]["contentSchema"]["$ref"],
            "#/components/schemas/OutputChunk");
  const auto& sizing = document["components"]["schemas"]["ServerSetting"];
  EXPECT_FALSE(sizing.contains("required"));  // of requests alone
  EXPECT_TRUE(document["components"]["schemas"]["GpuHealth"].contains("required"));
  for (const auto& [name, type] : document["components"]["schemas"].items()) {
    EXPECT_TRUE(type["type"] == "object" || type.contains("enum")) << name;
  }
}

// Makers of clients make types of their own from the names of calls and schemas, and many of them
// do not tell names apart that differ in case alone.
TEST_F(ServerTest, TheDocumentsNamesStayApartWhateverIsMadeOfThem) {
  start();
  const auto document = parsed(ask("GET", "/v1/openapi.json"));
  const auto folded = [](std::string name) {
    name = base::to_lower(name);
    for (const std::string_view end :
         {"request", "response", "params", "body", "api", "model", "dto", "client"}) {
      EXPECT_FALSE(name.ends_with(end)) << name;
    }
    return name;
  };
  std::set<std::string> names;
  for (const auto& [name, schema] : document["components"]["schemas"].items()) {
    EXPECT_TRUE(names.insert(folded(name)).second) << name;
  }
  for (const char* own : {"configuration", "error", "object", "file", "response", "status"}) {
    EXPECT_FALSE(names.contains(own)) << own;
  }
  std::set<std::string> tags;
  for (const auto& tag : document["tags"]) {
    EXPECT_TRUE(tags.insert(tag["name"]).second);
    EXPECT_FALSE(tag["description"].get<std::string>().empty()) << tag;
  }
  std::set<std::string> calls;
  for (const auto& [path, operations] : document["paths"].items()) {
    for (const auto& [method, operation] : operations.items()) {
      const std::string id = operation["operationId"];
      EXPECT_TRUE(calls.insert(folded(id)).second) << id;
      EXPECT_FALSE(names.contains(base::to_lower(id))) << id << " is a schema, too";
      EXPECT_FALSE(operation["summary"].get<std::string>().empty()) << id;
      EXPECT_TRUE(tags.contains(operation["tags"][0])) << id;
      EXPECT_TRUE(operation["responses"].contains("401")) << id;
    }
  }
  const auto& cancel = document["paths"]["/v1/jobs/{id}/cancel"]["post"]["responses"];
  for (const char* status : {"400", "403", "404", "409", "429", "503", "default"}) {
    ASSERT_TRUE(cancel.contains(status)) << status;
    const std::string target = cancel[status]["$ref"];
    EXPECT_TRUE(document["components"]["responses"].contains(
        target.substr(std::string_view("#/components/responses/").size())))
        << target;
  }
}

}  // namespace
}  // namespace gpu_platform::api
