// Which GPUs a job gets on boards whose links differ, and what it is told about them.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

constexpr const char* kWaits = "until [ -e \"$FLAG\" ]; do sleep 0.2; done";

class Board {
 public:
  explicit Board(const char* name) : daemon_({.emulate = name}) {}

  bool start() { return daemon_.start(); }
  std::string log() { return daemon_.log(); }
  // A job that stays until the daemon of the test ends; its id.
  std::string submit(std::vector<std::string> options) {
    options.insert(options.end(), {"--", "/bin/sh", "-c", kWaits});
    return daemon_.submit(std::move(options));
  }
  nlohmann::json running(const std::string& id) {
    EXPECT_TRUE(eventually([&] { return daemon_.job(id)["state"] == "RUNNING"; }));
    return daemon_.job(id);
  }
  // On the one node the job fails first for this.
  void expect_waiting_for(const std::string& id, const std::string& constraint) {
    EXPECT_TRUE(eventually([&] {
      return daemon_.job(id)["wait_reason"]["counts"].contains(constraint);
    })) << daemon_.job(id);
  }
  void cancel(const std::string& id) {
    EXPECT_EQ(daemon_.cli({"jobs", "cancel", id}).exit_code, 0);
  }
  std::string topology() { return daemon_.cli({"topology"}).out; }

 private:
  Daemon daemon_;
};

TEST(Placement, PairsOfTheCubeMeshHaveTwoLinks) {
  Board board("v100x8");
  ASSERT_TRUE(board.start()) << board.log();
  const auto job = board.running(board.submit({"--gpus", "2"}));
  ASSERT_EQ(job["gpus"].size(), 2U) << job;
  for (const auto& gpu : job["gpus"]) EXPECT_EQ(gpu["link"], "NV2") << job;
  EXPECT_EQ(job["warnings"].size(), 0U) << job;
  EXPECT_NE(board.topology().find("NV2"), std::string::npos);
}

TEST(Placement, AJobOverTwoSocketsIsToldSo) {
  Board board("l40s-x8");
  ASSERT_TRUE(board.start()) << board.log();
  const auto job = board.running(board.submit({"--gpus", "8"}));
  ASSERT_EQ(job["warnings"].size(), 1U) << job;
  EXPECT_NE(job["warnings"][0].get<std::string>().find("2 sockets"), std::string::npos);
}

TEST(Placement, SocketsAreCrossedOnlyWhereTheJobSaysSo) {
  Board board("l40s-x8");
  ASSERT_TRUE(board.start()) << board.log();
  // One socket is full, and the other has two GPUs left.
  board.running(board.submit({"--gpus", "4", "--strict-numa"}));
  board.running(board.submit({"--gpus", "2", "--strict-numa"}));
  const auto pair = board.running(board.submit({"--gpus", "2", "--strict-numa"}));
  EXPECT_EQ(pair["warnings"].size(), 0U);
  EXPECT_EQ(pair["gpus"][0]["link"], pair["gpus"][1]["link"]);

  Board apart("l40s-x8");
  ASSERT_TRUE(apart.start()) << apart.log();
  apart.running(apart.submit({"--gpus", "3", "--strict-numa"}));
  apart.running(apart.submit({"--gpus", "3", "--strict-numa"}));
  // One GPU is free on each socket.
  const std::string strict = apart.submit({"--gpus", "2", "--strict-numa"});
  apart.expect_waiting_for(strict, "gpus_across_sockets");
  apart.cancel(strict);
  const auto over = apart.running(apart.submit({"--gpus", "2", "--allow-cross-numa"}));
  EXPECT_EQ(over["warnings"].size(), 1U) << over;
}

}  // namespace
}  // namespace gpu_platform::e2e
