// What jobs and commands do on their GPUs, through the command line.

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

class Monitor : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon_.start()) << daemon_.log(); }

  // The document that `monitor --json` prints behind what its command prints.
  static nlohmann::json document_in(const std::string& output) {
    const std::size_t begin = output.find("{\"monitoring_duration_seconds\"");
    if (begin == std::string::npos) return {};
    const std::size_t end = output.find('\n', begin);
    return nlohmann::json::parse(output.substr(begin, end - begin), nullptr, false);
  }
  // The names and the types of the requirement's document; all of it was read.
  static void expect_shape_of_the_requirement(const nlohmann::json& document) {
    EXPECT_EQ(keys_of(document), (std::set<std::string>{"monitoring_duration_seconds",
                                                        "sample_count", "gpu_stats", "extra"}));
    EXPECT_TRUE(document["monitoring_duration_seconds"].is_number_float()) << document;
    EXPECT_TRUE(document["sample_count"].is_number_integer()) << document;
    for (const auto& [index, stats] : document["gpu_stats"].items()) {
      EXPECT_EQ(index.find_first_not_of("0123456789"), std::string::npos) << index;
      EXPECT_EQ(keys_of(stats),
                (std::set<std::string>{"name", "utilization", "memory_used_mb",
                                       "memory_usage_percent", "temperature_c", "power_draw_w"}));
      EXPECT_EQ(stats["name"], "NVIDIA H100 80GB HBM3");
      EXPECT_TRUE(stats["utilization"]["samples"].is_number_integer()) << stats;
      for (const char* name : {"utilization", "memory_used_mb", "memory_usage_percent",
                               "temperature_c", "power_draw_w"}) {
        nlohmann::json bounds = stats[name];
        if (bounds.is_object() && name == std::string("utilization")) bounds.erase("samples");
        ASSERT_EQ(keys_of(bounds), (std::set<std::string>{"min", "max", "mean"})) << name;
        for (const auto& [bound, value] : bounds.items()) {
          EXPECT_TRUE(value.is_number_float()) << name << ' ' << bound << ' ' << value;
        }
        EXPECT_LE(bounds["min"].get<double>(), bounds["mean"].get<double>()) << name;
        EXPECT_LE(bounds["mean"].get<double>(), bounds["max"].get<double>()) << name;
      }
    }
  }
  // What `monitor` says of the job, once anything was read of its GPUs.
  nlohmann::json use_of(const std::string& id) const {
    nlohmann::json document;
    EXPECT_TRUE(eventually([&] {
      const Finished asked = daemon_.cli({"monitor", id, "--json"});
      document = nlohmann::json::parse(asked.out, nullptr, false);
      return asked.exit_code == 0 && document.is_object();
    })) << daemon_.log();
    return document;
  }

  TemporaryDirectory directory_;
  Daemon daemon_;
};

TEST_F(Monitor, OfACommandInAJobReadsTheGpusOfTheJobAlone) {
  const Finished ran = daemon_.cli({"run", "--gpus", "2", "--", program("gpu-platform"), "monitor",
                                    "--interval", "100ms", "--json", "--", program("gpu-workload"),
                                    "--memory", "1G", "--duration", "1s"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const nlohmann::json document = document_in(ran.out);
  ASSERT_TRUE(document.is_object()) << ran.out;
  expect_shape_of_the_requirement(document);
  EXPECT_EQ(document["gpu_stats"].size(), 2U) << document;
  EXPECT_GE(document["sample_count"].get<int>(), 2);
  for (const auto& [index, stats] : document["gpu_stats"].items()) {
    EXPECT_GE(stats["utilization"]["samples"].get<int>(), 2) << index;
    EXPECT_FALSE(stats["memory_used_mb"].is_null()) << index;
  }
}

TEST_F(Monitor, OfACommandExitsWithItsCodeAlsoWithoutADaemonAndGpus) {
  const std::string file = directory_.path() + "/run.json";
  const auto monitored = [&](std::vector<std::string> command) {
    std::vector<std::string> words = {program("gpu-platform"), "monitor", "--output", file, "--"};
    words.insert(words.end(), command.begin(), command.end());
    return run_command(words).exit_code;
  };
  EXPECT_EQ(monitored({"/bin/sh", "-c", "exit 7"}), 7);
  std::ifstream in(file);
  const nlohmann::json document = nlohmann::json::parse(in, nullptr, false);
  ASSERT_TRUE(document.is_object());
  EXPECT_TRUE(document["gpu_stats"].is_object());
  EXPECT_EQ(monitored({"/bin/sh", "-c", "kill -TERM $$"}), 128 + 15);
  EXPECT_EQ(monitored({directory_.path() + "/nothing"}), 127);
}

TEST_F(Monitor, OfAJobIsThereWhileItRunsAndAfterItsEnd) {
  const std::string id =
      daemon_.submit({"--gpus", "1", "--monitor", "--", program("gpu-workload"), "--memory", "1G"});
  ASSERT_TRUE(daemon_.reaches(id, "RUNNING")) << daemon_.log();
  const nlohmann::json running = use_of(id);
  EXPECT_EQ(running["gpu_stats"].size(), 1U) << running;
  EXPECT_EQ(daemon_.cli({"jobs", "cancel", id}).exit_code, 0);
  ASSERT_TRUE(daemon_.reaches(id, "CANCELLED")) << daemon_.log();
  const nlohmann::json ended = use_of(id);
  expect_shape_of_the_requirement(ended);
  EXPECT_GE(ended["sample_count"].get<int>(), running["sample_count"].get<int>());
  const nlohmann::json job = daemon_.job(id);
  EXPECT_FALSE(job["gpu_use"].is_null()) << job;

  ASSERT_EQ(daemon_.terminate(), 0);
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  EXPECT_EQ(use_of(id)["sample_count"], ended["sample_count"]) << "it outlives the daemon";
}

TEST_F(Monitor, SaysThatNothingWasReadOfAJobWithoutGpus) {
  const std::string id = daemon_.submit({"--gpus", "0", "--", "/bin/true"});
  ASSERT_TRUE(daemon_.reaches(id, "COMPLETED")) << daemon_.log();
  const Finished asked = daemon_.cli({"monitor", id});
  EXPECT_NE(asked.exit_code, 0);
  EXPECT_NE(asked.err.find("nothing was read"), std::string::npos) << asked.err;
  EXPECT_EQ(daemon_.cli({"monitor", "train.py"}).exit_code, 2) << "a command stands behind '--'";
}

}  // namespace
}  // namespace gpu_platform::e2e
