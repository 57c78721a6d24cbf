#include "shims/documents/slurm_json.h"

#include <gtest/gtest.h>

#include "client/answer.h"
#include "shims/documents/slurm_json_parts.h"

namespace gpu_platform::shims {
namespace {

using cli::Json;

v1::Job job() {
  return *client::message_of<v1::Job>(
      R"({"id":"7","state":"RUNNING","started_at":"2026-07-01T12:00:00Z","submitted_at":"2026-07-01T11:59:00Z",)"
      R"("cpus":4,"memory_bytes":2147483648,"gpus":[{"node":"n1","index":1}],"attempts":[{"nodes":["n1"]}],)"
      R"("spec":{"name":"train","user":"ada","gpus":1,"gpu_types":["H100"],"time_limit_seconds":3600,)"
      R"("command":["/opt/gpu-platform-slurm","batch-step"]}})");
}

DocumentFacts facts(DocumentForm form) {
  NodeView node;
  node.name = "n1";
  node.base_state = "mixed";
  node.is_draining = true;
  node.cpus = 8;
  node.cpus_used = 4;
  node.memory_mib = 4096;
  node.memory_used_mib = 2048;
  node.gpus = {{"H100-80GB", 2, {1}}};
  return {form, base::Instant(1'782'907'260'000'000'000), {node}, usual_site()};
}

Json queue(DocumentForm form) {
  const std::vector<QueueEntry> entries = {{job(), {}}};
  return jobs_document(facts(form), entries)["jobs"][0];
}

const Json kSet60 = {{"set", true}, {"infinite", false}, {"number", 60}};

TEST(SlurmDocuments, JobsHaveTheFormOf23_11AndLater) {
  const Json entry = queue(DocumentForm::k42);
  EXPECT_EQ(entry["job_id"], 7);
  EXPECT_EQ(entry["job_state"], Json::array({"RUNNING"}));
  EXPECT_EQ(entry["time_limit"], kSet60);
  EXPECT_EQ(entry["array_task_id"], unset_number());
  EXPECT_EQ(entry["tasks_per_core"], infinite_number());
  EXPECT_EQ(entry["gres_detail"], Json::array({"gpu:H100-80GB:1(IDX:1)"}));
  EXPECT_EQ(entry["exit_code"]["status"], Json::array({"SUCCESS"}));
  EXPECT_EQ(entry["job_resources"]["nodes"]["allocation"][0]["memory"]["allocated"], 2048);
  for (const auto& [key, value] : entry.items()) EXPECT_FALSE(value.is_null()) << key;
}

TEST(SlurmDocuments, EachVersionHasItsFields) {
  EXPECT_EQ(queue(DocumentForm::k40)["job_resources"]["allocated_nodes"][0]["nodename"], "n1");
  EXPECT_TRUE(queue(DocumentForm::k41).contains("minimum_switches"));
  EXPECT_TRUE(queue(DocumentForm::k42).contains("required_switches"));
  EXPECT_EQ(queue(DocumentForm::k38)["job_state"], "RUNNING");
  EXPECT_EQ(queue(DocumentForm::k38)["nice"], 0);
}

TEST(SlurmDocuments, NodesAndPartitionsAreThoseOfSinfo) {
  const DocumentFacts all = facts(DocumentForm::k42);
  const Json node = nodes_document(all, all.nodes)["nodes"][0];
  EXPECT_EQ(node["state"], Json::array({"MIXED", "DRAIN"}));
  EXPECT_EQ(node["cpu_load"], 0);
  EXPECT_EQ(node["free_mem"]["number"], 2048);
  EXPECT_EQ(node["features"], Json::array({"gpu", "h100", "H100-80GB"}));
  const Json line = sinfo_document(all, all.nodes, all.site.partitions)["sinfo"][0];
  EXPECT_EQ(line["node"]["state"], Json::array({"MIXED", "DRAIN"}));
  EXPECT_EQ(line["nodes"]["allocated"], 1);
  EXPECT_EQ(line["cpus"]["other"], 4) << "free, and not to be had";
  EXPECT_EQ(line["partition"]["name"], "gpu");
  EXPECT_EQ(line["partition"]["maximums"]["time"], infinite_number());
  DocumentFacts twins = all;
  twins.nodes.push_back(all.nodes.front());
  twins.nodes.back().name = "n2";
  const Json lines = sinfo_document(twins, twins.nodes, all.site.partitions)["sinfo"];
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["nodes"]["nodes"], Json::array({"n1", "n2"}));
  EXPECT_EQ(lines[0]["cpus"]["total"], 16);
  EXPECT_EQ(nodes_document(facts(DocumentForm::k38), all.nodes)["nodes"][0]["state"], "mixed");
}

TEST(SlurmDocuments, AccountsHaveTheStepsOfTheirJobs) {
  const std::vector<v1::Job> jobs = {job()};
  const Json entry = accounting_document(facts(DocumentForm::k42), jobs)["jobs"][0];
  EXPECT_EQ(entry["state"]["current"], Json::array({"RUNNING"}));
  EXPECT_EQ(entry["time"]["elapsed"], 60);
  EXPECT_EQ(entry["time"]["planned"], kSet60);
  EXPECT_EQ(entry["required"]["memory_per_node"]["number"], 2048);
  EXPECT_EQ(entry["steps"][0]["step"]["id"], "7.batch");
  EXPECT_FALSE(accounting_document(facts(DocumentForm::k40), jobs)["jobs"][0].contains("stdout"));
  EXPECT_EQ(accounting_document(facts(DocumentForm::k38), jobs)["jobs"][0]["state"]["current"],
            "RUNNING");
}

TEST(SlurmDocuments, EndsHaveAStatus) {
  EXPECT_EQ(exit_of_document("0:9")["status"], Json::array({"SIGNALED"}));
  EXPECT_EQ(exit_of_document("0:9")["signal"]["name"], "KILL");
  EXPECT_EQ(exit_of_document("0:9")["return_code"], unset_number());
  EXPECT_EQ(exit_of_document("3:0")["status"], Json::array({"ERROR"}));
  EXPECT_EQ(exit_of_document("3:0")["return_code"], set_number(3));
}

TEST(SlurmDocuments, WhatIsCountedIsAList) {
  const Json list = tres_of_document("cpu=8,mem=2.50G,node=1,gres/gpu=2");
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list[1]["count"], 2560);
  EXPECT_EQ(list[3], (Json{{"type", "gres"}, {"name", "gpu"}, {"id", 1001}, {"count", 2}}));
  EXPECT_TRUE(tres_of_document("").empty());
}

TEST(SlurmDocuments, AreYamlToo) {
  const Json document = {{"jobs", Json::array({Json{{"name", "a \"b\""}, {"id", 7}, {"ok", true}},
                                               Json{{"list", Json::array({1, "x"})}}})},
                         {"none", ""},
                         {"empty", Json::array()},
                         {"map", {{"part", 0.5}, {"nothing", nullptr}}}};
  EXPECT_EQ(
      yaml_text(document),
      "%YAML 1.1\n--- !!map\n!!str jobs: !!seq\n- !!map\n  !!str name: !!str \"a \\\"b\\\"\"\n"
      "  !!str id: !!int 7\n  !!str ok: !!bool true\n- !!map\n  !!str list: !!seq\n"
      "  - !!int 1\n  - !!str \"x\"\n!!str none: !!str\n!!str empty: !!seq []\n"
      "!!str map: !!map\n  !!str part: !!float 0.500000\n  !!str nothing: !!null null\n...\n");
}

}  // namespace
}  // namespace gpu_platform::shims
