#include "execution/container/fetched_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "base/check.h"
#include "execution/container/fake_engine_test.h"

namespace gpu_platform::execution {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Json = nlohmann::json;

constexpr base::Duration kKeep = base::hours(1);

base::Instant at_hour(int hour) {
  return base::Instant(1'700'000'000'000'000'000) + base::hours(hour);
}

// An engine with images of these tags, and a folder where fetched ones are remembered.
class FetchedImagesTest : public ::testing::Test {
 protected:
  FetchedImagesTest()
      : engine_([this](const EngineRequest& request) { return answer(request); }),
        calls_(engine_.socket(), -1, [] { return true; }) {
    char folder[] = "/tmp/fetched-images-XXXXXX";
    CHECK(mkdtemp(folder) != nullptr);
    root_ = folder;
    std::filesystem::create_directory(root_ + "/run");
  }
  ~FetchedImagesTest() override { std::filesystem::remove_all(root_); }

  std::string answer(const EngineRequest& request) {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, tags] : tags_) {
      if (request.is("GET /images/" + id + "/json")) {
        return http_answer(200, Json{{"Id", id}, {"RepoTags", tags}}.dump());
      }
    }
    if (request.is("GET /containers/json")) return http_answer(200, containers_);
    if (request.method != "DELETE") return usual_answer(request);
    return http_answer(refusal_, R"({"message":"image is in use"})");
  }
  // What the engine was asked to remove.
  std::vector<std::string> removed() {
    std::vector<std::string> names;
    for (const EngineRequest& request : engine_.requests()) {
      if (request.method == "DELETE") names.push_back(request.target);
    }
    return names;
  }
  void clean(int hour) { images().remove_unused(calls_, kKeep, at_hour(hour)); }
  FetchedImages images() const { return FetchedImages(root_); }
  std::string file() const { return root_ + "/run/fetched-images"; }

  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> tags_;
  std::string containers_ = "[]";
  int refusal_ = 200;
  FakeEngine engine_;
  EngineCalls calls_;
  std::string root_;
};

TEST_F(FetchedImagesTest, AnImageThatNoJobHasUsedForThatLongIsRemovedAndForgotten) {
  tags_["aa"] = {"r.org/a:1"};
  images().note_fetch("r.org/a:1", {"aa", "", true}, at_hour(0));
  clean(1);
  EXPECT_THAT(removed(), IsEmpty());
  images().note_use("r.org/a:1", at_hour(2));
  clean(3);
  EXPECT_THAT(removed(), IsEmpty());
  clean(4);
  clean(5);
  EXPECT_THAT(removed(), ElementsAre("/images/r.org/a:1?force=false"));
}

TEST_F(FetchedImagesTest, WhatWasThereBeforeStays) {
  tags_["aa"] = {"r.org/a:1", "r.org/b:1"};
  tags_["bb"] = {"busybox:latest"};
  images().note_fetch("r.org/a:1", {"aa", "aa", true}, at_hour(0));
  images().note_fetch("r.org/a:2", {"bb", "cc", true}, at_hour(0));
  images().note_fetch("busybox", {"bb", "bb", false}, at_hour(0));
  clean(9);
  EXPECT_THAT(removed(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(FetchedImagesTest, OfSeveralNamesOnlyTheJobsAreTaken) {
  tags_["aa"] = {"localhost/sites:1", "docker.io/library/busybox:latest"};
  tags_["bb"] = {"localhost/sites:2"};
  images().note_fetch("busybox", {"aa", "", true}, at_hour(0));
  images().note_fetch("r.org/retagged", {"bb", "", true}, at_hour(0));
  clean(9);
  EXPECT_THAT(removed(), ElementsAre("/images/docker.io/library/busybox:latest?force=false"));
}

TEST_F(FetchedImagesTest, WhatANewerVersionHasReplacedIsRemovedByItsId) {
  tags_["aa"] = {};
  tags_["bb"] = {"r.org/a:1"};
  images().note_fetch("r.org/a:1", {"aa", "", true}, at_hour(0));
  images().note_fetch("r.org/a:1", {"bb", "aa", true}, at_hour(1));
  clean(2);
  EXPECT_THAT(removed(), ElementsAre("/images/aa?force=false"));
}

TEST_F(FetchedImagesTest, WhatTheEngineRefusesToRemoveIsTriedAgainNextTime) {
  tags_["aa"] = {"r.org/a:1"};
  images().note_fetch("r.org/a:1", {"aa", "", true}, at_hour(0));
  refusal_ = 409;
  clean(9);
  EXPECT_EQ(removed().size(), 1U);
  refusal_ = 200;
  clean(9);
  clean(9);
  EXPECT_EQ(removed().size(), 2U);
}

TEST_F(FetchedImagesTest, WhatAContainerMayUseIsLeft) {
  tags_["sha256:aa"] = {"r.org/a:1"};
  images().note_fetch("r.org/a:1", {"sha256:aa", "", true}, at_hour(0));
  for (const char* const containers : {R"([7, {"ImageID": "cc"}, {"ImageID": "aa"}])",
                                       R"([{"ImageID": "sha256:aa"}])", "{}", ""}) {
    containers_ = containers;
    clean(9);
    EXPECT_THAT(removed(), IsEmpty()) << containers;
  }
  containers_ = R"([{"ImageID": "sha256:cc"}, {}])";
  clean(9);
  EXPECT_EQ(removed().size(), 1U);
}

TEST_F(FetchedImagesTest, WhatIsGoneIsForgotten) {
  images().note_fetch("r.org/a:1", {"aa", "", true}, at_hour(0));
  clean(9);
  EXPECT_THAT(removed(), IsEmpty());
  std::ifstream text(file());
  EXPECT_EQ(Json::parse(text), Json::array());
}

TEST_F(FetchedImagesTest, ADamagedFileRemembersNothing) {
  tags_["aa"] = {"r.org/a:1"};
  const auto used = at_hour(0).unix_ns() / 1'000'000'000;
  for (const std::string& text :
       {std::string("garbage"), std::string("{}"), std::string("[7, {}]"),
        fmt::format(R"([{{"id":"../x","reference":"r.org/a:1","used":{}}}])", used),
        std::string(R"([{"id":"aa","reference":"r.org/a:1","used":-1}])")}) {
    std::ofstream(file()) << text;
    clean(9);
    EXPECT_THAT(removed(), IsEmpty()) << text;
  }
  std::ofstream(file()) << fmt::format(R"([{{"id":"aa","reference":"r.org/a:1","used":{}}}])",
                                       used);
  clean(9);
  EXPECT_EQ(removed().size(), 1U);
}

TEST_F(FetchedImagesTest, AClockThatGoesBackRemovesNothing) {
  tags_["aa"] = {"r.org/a:1"};
  images().note_fetch("r.org/a:1", {"aa", "", true}, at_hour(9));
  clean(0);
  EXPECT_THAT(removed(), IsEmpty());
}

TEST(FetchedImages, NamesAreComparedAsTheEnginesWriteThem) {
  EXPECT_EQ(full_reference("busybox"), "docker.io/library/busybox:latest");
  EXPECT_EQ(full_reference("localhost:5000/a/b:1"), "localhost:5000/a/b:1");
  EXPECT_EQ(full_reference("localhost:5000/a"), "localhost:5000/a:latest");
  EXPECT_EQ(full_reference("r.org/a:1@sha256:00"), "r.org/a@sha256:00");
  EXPECT_EQ(removable_name({{"Id", "aa"}, {"RepoTags", {"<none>:<none>"}}}, "r.org/a:1"), "aa");
  EXPECT_EQ(removable_name({{"Id", "aa/../x"}, {"RepoTags", nullptr}}, "r.org/a:1"), "");
  EXPECT_EQ(removable_name(Json("text"), "r.org/a:1"), "");
}

}  // namespace
}  // namespace gpu_platform::execution
