#include "model/container.h"
#include "model/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

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
    EXPECT_THAT(error_in_image(image), IsEmpty()) << image;
  }
}

TEST(Container, MalformedReferencesAreRefused) {
  for (const char* const image :
       {"",    "/",     "a/",   "/a",    "a//b", "A",          "a/../b",       "..",
        "a:",  "a:b:c", "a b",  "a:-x",  "a@",   "a@sha256:1", "host:99999/a", "http://a/b",
        "a/B", "-a",    "a\nb", "a?x=1", "a/b&c"}) {
    EXPECT_THAT(error_in_image(image), Not(IsEmpty())) << image;
  }
  EXPECT_THAT(error_in_image(std::string(600, 'a')), Not(IsEmpty()));
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

TEST(Container, NothingIsMountedWhereItIsSaidWhoAJobIs) {
  for (const char* const target :
       {"/etc", "/etc/", "/etc/group", "/etc/passwd", "/etc/ssl/certs"}) {
    EXPECT_THAT(error_in_place(target), HasSubstr("belongs to the platform")) << target;
    EXPECT_FALSE(parse_container_mount(std::string("/data:") + target)) << target;
    EXPECT_FALSE(parse_container_tmpfs(std::string(target) + ":1M")) << target;
  }
  EXPECT_EQ(error_in_place("/etcetera"), "");
  EXPECT_TRUE(parse_container_mount("/etc/ssl:/ssl:ro")) << "the site's rules say";
}

TEST(Container, NoJobStartsInAFolderOfTheKernel) {
  JobSpec spec = in_container();
  for (const char* const folder : {"/proc", "/proc/self/fd/7", "/sys/fs", "/dev/shm", "/a/../b"}) {
    spec.container_workdir = folder;
    EXPECT_EQ(check_container(spec).error().field, "container_workdir") << folder;
  }
  spec.container_workdir = "/";
  EXPECT_TRUE(check_container(spec));
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

TEST(Container, APlatformIsLinuxAndAnArchitecture) {
  for (const char* const right : {"linux/amd64", "linux/arm64/v8", "linux/riscv64"}) {
    EXPECT_EQ(error_in_platform(right), "") << right;
  }
  for (const char* const wrong :
       {"", "linux", "linux/", "linux/amd64/", "linux/amd64/v3/x", "freebsd/amd64", "linux/AMD64",
        "linux/../x", "linux/a b", "linux/a?b", "linux/a&b=c", " linux/amd64", "all"}) {
    EXPECT_THAT(error_in_platform(wrong), HasSubstr("linux/ARCH")) << wrong;
  }
  EXPECT_NE(error_in_platform("linux/" + std::string(100, 'a')), "");
  JobSpec spec = in_container();
  spec.container_platform = "linux/arm64";
  EXPECT_TRUE(check_container(spec));
  spec.container_platform = "arm64";
  EXPECT_EQ(check_container(spec).error().field, "container_platform");
}

TEST(Container, AnnotationsHaveKeysOfTheirOwn) {
  for (const char* const right : {"a", "team", "org.example/purpose", "a_b-c.d/e"}) {
    EXPECT_EQ(error_in_annotation(right, "any text = ä\n"), "") << right;
  }
  for (const char* const wrong : {"", "/a", "a/", "a b", "a=b", "ä", "a\nb", "-a"}) {
    EXPECT_THAT(error_in_annotation(wrong, ""), HasSubstr("is not a key")) << wrong;
  }
  EXPECT_THAT(error_in_annotation("gpu-platform.attempt", "1-1"),
              HasSubstr("which is the platform's"));
  EXPECT_NE(error_in_annotation(std::string(254, 'a'), ""), "");
  EXPECT_NE(error_in_annotation("a", std::string(1025, 'a')), "");
  EXPECT_NE(error_in_annotation("a", std::string_view("\0", 1)), "");
  JobSpec spec = in_container();
  for (int i = 0; i < 65; ++i) spec.annotations.push_back({fmt::format("a{:02}", i), "x"});
  EXPECT_EQ(check_container(spec).error().field, "annotations");
  spec.annotations.pop_back();
  EXPECT_TRUE(check_container(spec));
  spec.annotations = {{"gpu-platform.job", "1"}};
  EXPECT_EQ(check_container(spec).error().field, "annotations");
}

TEST(Container, APodHasNoAnnotationThatSteersItsCluster) {
  for (const char* const right :
       {"gpu-fraction", "nvidia.com/container.main.gpu-memory.limit", "a.example/B_c",
        "k8s.io.example/a", "mykubernetes.io/a", "nvidia.com/container.main.gpus.devices.note"}) {
    EXPECT_EQ(error_in_pod_annotation(right), "") << right;
  }
  for (const char* const wrong : {"a/b/c", "A.example/b", "a./b", "a..b/c", "a/_b", "a/b-"}) {
    EXPECT_THAT(error_in_pod_annotation(wrong), HasSubstr("write NAME or DOMAIN/NAME")) << wrong;
  }
  EXPECT_NE(error_in_pod_annotation("a/" + std::string(64, 'b')), "");
  EXPECT_EQ(error_in_pod_annotation("a/" + std::string(63, 'b')), "");
  for (const char* const ours : {"gpu-platform/cluster", "job.gpu-platform/run"}) {
    EXPECT_EQ(error_in_pod_annotation(ours), "belongs to the platform") << ours;
  }
  for (const char* const theirs :
       {"cdi.k8s.io/gpus", "k8s.io/a", "container.apparmor.security.beta.kubernetes.io/main"}) {
    EXPECT_EQ(error_in_pod_annotation(theirs), "belongs to Kubernetes") << theirs;
  }
  EXPECT_THAT(error_in_pod_annotation("nvidia.com/container.main.gpus.devices"),
              HasSubstr("chooses devices"));
}

TEST(Container, WhatAContainerCannotHaveIsRefused) {
  JobSpec spec = in_container();
  EXPECT_TRUE(check_container(spec));
  spec.container_workdir = "work";
  EXPECT_EQ(check_container(spec).error().field, "container_workdir");
}

TEST(Container, OnThisHostItHasOneProcessOnOneNode) {
  JobSpec spec = in_container();
  EXPECT_EQ(unsupported_by_host_container(spec), Unsupported());
  spec.request.nodes = 2;
  EXPECT_EQ(unsupported_by_host_container(spec).field, "image");
  EXPECT_TRUE(check_container(spec)) << "another engine may have it";
  spec = in_container();
  spec.request.gpus = 2;
  spec.per_gpu = true;
  EXPECT_EQ(unsupported_by_host_container(spec).field, "image");
  spec = in_container();
  spec.limit_signal = LimitSignal{10, base::seconds(60), true};
  EXPECT_EQ(unsupported_by_host_container(spec).field, "limit_signal");
}

TEST(Container, APodCannotHaveEverything) {
  const auto field_of = [](const auto& change) {
    JobSpec spec = in_container();
    spec.uid = 1000;
    change(spec);
    const Unsupported found = unsupported_by_kubernetes(spec);
    EXPECT_TRUE(found.field.empty() || found.why.starts_with(found.field + ": "));
    return found.field;
  };
  EXPECT_EQ(field_of([](JobSpec&) {}), "");
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.request.nodes = 4; }), "") << "gangs are pods too";
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.tmpfs = {"/scratch:1G"}; }), "");
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.image.clear(); }), "image");
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.uid = 0; }), "user");
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.mounts = {"/a:/b"}; }), "mounts");
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.takes_input = true; }), "") << "clients attach to it";
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.annotations = {{"a", "1"}}; }), "")
      << "the site says which";
  EXPECT_EQ(
      field_of([](JobSpec& spec) { spec.annotations = {{"a", "1"}, {"gpu-platform/job", "1"}}; }),
      "annotations");
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.output = "out.txt"; }), "output");
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.error = "err.txt"; }), "error");
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.prolog = "p"; }), "prolog");
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.epilog = "e"; }), "epilog");
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.container_network = ContainerNetwork::kHost; }),
            "container_network");
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.limit_signal = LimitSignal{10, base::seconds(60)}; }),
            "limit_signal");
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.hang_timeout = base::minutes(5); }),
            "hang_timeout_seconds");
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.preflight = Preflight::kQuick; }), "preflight");
  EXPECT_EQ(field_of([](JobSpec& spec) { spec.monitor = true; }), "monitor");
  const auto part = [](JobSpec& spec) {
    spec.request.gpus = 1;
    spec.request.share_per_gpu = base::GpuShare(3500);
  };
  EXPECT_EQ(field_of(part), "gpu_share");
  const auto lead = [](JobSpec& spec) {
    spec.request.nodes = 2;
    spec.first_node_only = true;
  };
  EXPECT_EQ(field_of(lead), "first_node_only");
}

TEST(Container, EachEngineObjectsForItself) {
  JobSpec spec;
  spec.uid = 1000;
  EXPECT_EQ(unsupported_by(EngineKind::kProcess, spec), Unsupported());
  EXPECT_EQ(unsupported_by(EngineKind::kKubernetes, spec).field, "image");
  spec.image = "docker.io/library/debian:12";
  EXPECT_EQ(unsupported_by(EngineKind::kKubernetes, spec), Unsupported());
}

}  // namespace
}  // namespace gpu_platform::model
