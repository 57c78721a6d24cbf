#include "model/container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

JobSpec in_container() {
  JobSpec spec;
  spec.image = "registry.example.org/team/train:1.2";
  return spec;
}

TEST(Container, ReferencesAsRegistriesHaveThem) {
  const std::string digest = "sha256:" + std::string(64, 'a');
  for (const std::string& image :
       {std::string("busybox"), std::string("busybox:1"), std::string("localhost/bb:latest"),
        std::string("localhost:5000/a/b"), std::string("nvcr.io/nvidia/pytorch:24.01-py3"),
        "busybox@" + digest, "a.b/c:1@" + digest}) {
    EXPECT_THAT(objection_to_image(image), IsEmpty()) << image;
  }
}

TEST(Container, MalformedReferencesAreRefused) {
  for (const char* const image :
       {"",    "/",     "a/",   "/a",    "a//b", "A",          "a/../b",       "..",
        "a:",  "a:b:c", "a b",  "a:-x",  "a@",   "a@sha256:1", "host:99999/a", "http://a/b",
        "a/B", "-a",    "a\nb", "a?x=1", "a/b&c"}) {
    EXPECT_THAT(objection_to_image(image), Not(IsEmpty())) << image;
  }
  EXPECT_THAT(objection_to_image(std::string(600, 'a')), Not(IsEmpty()));
}

TEST(Container, AMountHasASourceATargetAndMaybeAMode) {
  const auto mount = parse_container_mount("/data/a:/in:ro");
  ASSERT_TRUE(mount);
  EXPECT_EQ(*mount, (ContainerMount{"/data/a", "/in", true}));
  EXPECT_FALSE(parse_container_mount("/data:/in")->read_only);
}

TEST(Container, MountsThatWouldReachTheHostAreRefused) {
  for (const char* const text : {"",         "/a",        "a:/b",        "/a:b",     "/a/../b:/c",
                                 "/a:/b/..", "/:/host",   "/a:/",        "/a:/proc", "/a:/proc/sys",
                                 "/a:/sys",  "/a:/dev",   "/a:/dev/shm", "/proc:/p", "/sys/fs:/s",
                                 "/dev:/d",  "/a:/b:rwx", "/a:/b:ro:ro", "/a//b:/c", "/./a:/b"}) {
    EXPECT_FALSE(parse_container_mount(text)) << text;
  }
  EXPECT_TRUE(parse_container_mount("/devices:/process")) << "names that only begin so";
}

TEST(Container, ATmpfsHasASize) {
  const auto tmpfs = parse_container_tmpfs("/scratch:2G");
  ASSERT_TRUE(tmpfs);
  EXPECT_EQ(*tmpfs, (ContainerTmpfs{"/scratch", base::kGiB * 2}));
  for (const char* const text : {"/scratch", "/scratch:", "/scratch:0", "scratch:1G", "/proc:1G"}) {
    EXPECT_FALSE(parse_container_tmpfs(text)) << text;
  }
}

TEST(Container, PartsOfAContainerNeedAnImage) {
  JobSpec spec;
  EXPECT_TRUE(check_container(spec));
  spec.mounts = {"/a:/b"};
  ASSERT_FALSE(check_container(spec));
  EXPECT_EQ(check_container(spec).error().field, "mounts");
  spec = {};
  spec.pull = ImagePull::kNever;
  EXPECT_EQ(check_container(spec).error().field, "pull");
}

TEST(Container, NoTwoThingsInOnePlace) {
  JobSpec spec = in_container();
  spec.mounts = {"/a:/x", "/b:/y"};
  EXPECT_TRUE(check_container(spec));
  spec.tmpfs = {"/y:1G"};
  EXPECT_EQ(check_container(spec).error().field, "tmpfs[0]");
  EXPECT_THAT(check_container(spec).error().message, HasSubstr("twice"));
}

TEST(Container, WhatAContainerCannotHaveIsRefused) {
  JobSpec spec = in_container();
  EXPECT_TRUE(check_container(spec));
  spec.request.nodes = 2;
  EXPECT_EQ(check_container(spec).error().field, "image");
  spec = in_container();
  spec.container_workdir = "work";
  EXPECT_EQ(check_container(spec).error().field, "container_workdir");
}

}  // namespace
}  // namespace gpu_platform::model
