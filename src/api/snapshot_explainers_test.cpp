#include "api/snapshot_explainers.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "api/fake_core_test.h"
#include "model/policy.h"

namespace gpu_platform::api {
namespace {

std::shared_ptr<const controller::Snapshot> snapshot_at(std::uint64_t seq) {
  auto snapshot = std::make_shared<controller::Snapshot>();
  snapshot->seq = model::EventSeq(seq);
  snapshot->policy = std::make_shared<const model::Policy>();
  return snapshot;
}

std::vector<model::WaitReason> reasons_of(SnapshotExplainer& explainer) {
  std::vector<model::WaitReason> reasons;
  for (const model::JobId id : explainer.order()) {
    reasons.push_back(explainer.explain(*explainer.snapshot().jobs.find(id.value)));
  }
  return reasons;
}

TEST(SnapshotExplainers, AllAnswersAboutASnapshotShareOne) {
  SnapshotExplainers explainers;
  const auto old_snapshot = snapshot_at(1);
  const auto snapshot = snapshot_at(2);
  const auto old_one = explainers.of(old_snapshot);
  EXPECT_EQ(explainers.of(old_snapshot), old_one);
  const auto one = explainers.of(snapshot);
  EXPECT_NE(one, old_one);
  EXPECT_EQ(&one->snapshot(), snapshot.get());
  EXPECT_EQ(&explainers.of(old_snapshot)->snapshot(), old_snapshot.get());
  EXPECT_EQ(explainers.of(snapshot), one) << "a late question does not drop the newest";
}

TEST(SnapshotExplainers, ANewSnapshotLetsGoOfTheOneBefore) {
  SnapshotExplainers explainers;
  auto snapshot = snapshot_at(1);
  const std::weak_ptr before = snapshot;
  auto answer = explainers.of(snapshot);
  snapshot.reset();
  explainers.of(snapshot_at(2));
  EXPECT_FALSE(before.expired()) << "an answer under way keeps what it is about";
  answer.reset();
  EXPECT_TRUE(before.expired());
}

TEST(SnapshotExplainers, WhatNoOneAsksForIsLetGo) {
  SnapshotExplainers explainers;
  auto snapshot = snapshot_at(1);
  const std::weak_ptr kept = snapshot;
  const auto* one = explainers.of(snapshot).get();
  explainers.forget_idle();
  EXPECT_EQ(explainers.of(snapshot).get(), one) << "it was asked for since it was made";
  snapshot.reset();
  explainers.forget_idle();
  EXPECT_FALSE(kept.expired());
  explainers.forget_idle();
  EXPECT_TRUE(kept.expired());
  explainers.forget_idle();
}

TEST(SnapshotExplainers, ThreadsThatAskAtOnceGetTheAnswersOfOneAlone) {
  FakeCore core;
  core.add_jobs(200, "ada", 1000);
  core.add_job("bob", 1001);
  const auto snapshot = core.snapshot();
  SnapshotExplainer alone(snapshot);
  const auto expected = reasons_of(alone);
  ASSERT_EQ(expected.size(), 201U);
  SnapshotExplainers explainers;
  std::vector<std::vector<model::WaitReason>> found(4);
  {
    std::vector<std::jthread> threads;
    for (auto& each : found) {
      threads.emplace_back([&] { each = reasons_of(*explainers.of(snapshot)); });
    }
  }
  for (const auto& each : found) EXPECT_EQ(each, expected);
}

}  // namespace
}  // namespace gpu_platform::api
