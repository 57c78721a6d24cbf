#include "shims/submission/container_options.h"
#include "model/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::shims {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string image(std::string_view enroots) {
  const auto read = image_of(enroots);
  return read ? *read : read.error().message;
}

TEST(ContainerOptions, ImagesOfEnrootAreThoseOfARegistry) {
  EXPECT_EQ(image("ubuntu:22.04"), "docker.io/library/ubuntu:22.04");
  EXPECT_EQ(image("docker://team/tool"), "docker.io/team/tool");
  EXPECT_EQ(image("nvcr.io#nvidia/pytorch:24.01-py3"), "nvcr.io/nvidia/pytorch:24.01-py3");
  EXPECT_EQ(image("docker://registry.org:5000#a/b@sha256:00"), "registry.org:5000/a/b@sha256:00");
  EXPECT_EQ(image("localhost/a:1"), "localhost/a:1");
  for (const char* const file : {"/images/a.sqsh", "./a.sqsh", "a.sqsh"})
    EXPECT_THAT(image(file), HasSubstr("a file of enroot")) << file;
  EXPECT_THAT(image("docker://me@registry.org#a"), HasSubstr("credentials"));
}

TEST(ContainerOptions, MountsHaveAPlaceAndMayBeReadOnly) {
  EXPECT_THAT(mounts_of("/a:/b,/c:/d:ro,/e,/f:/g:rw").value(),
              ElementsAre("/a:/b", "/c:/d:ro", "/e:/e", "/f:/g"));
  EXPECT_THAT(mounts_of("").value(), ElementsAre());
  EXPECT_THAT(mounts_of("/a:/b:x-create=dir").error().message, HasSubstr("x-create=dir"));
}

struct Contained {
  Settings settings;
  Work work;
  ContainerCaller caller{{{"HOME", "/home/ann"}, {"KEY", "secret"}, {"DATA", "/d"}}, "/home/ann"};
  v1::JobSpec spec;

  explicit Contained(std::map<std::string, std::string> further = {}) {
    (*spec.mutable_environment())["KEY"] = "secret";
    (*spec.mutable_environment())["SLURM_NTASKS"] = "2";
    settings.set(Option{"container-image"}, "localhost/a:1");
    for (const auto& [name, value] : further) settings.set(Option{std::string_view(name)}, value);
  }
  // Empty: it was put.
  std::string put() {
    const auto done = put_container(settings, work, caller, spec);
    return done ? "" : done.error().field + ": " + done.error().message;
  }
};

TEST(ContainerOptions, AScriptGoesWithItsInterpreterAsAnArgument) {
  Contained it;
  it.work.script = "#!/bin/bash -l\necho $1\n";
  it.work.words = {"train.sh", "one"};
  ASSERT_EQ(it.put(), "");
  EXPECT_EQ(it.spec.image(), "localhost/a:1");
  EXPECT_EQ(it.spec.entrypoint(), "/bin/sh");
  const std::vector<std::string> words(it.spec.command().begin(), it.spec.command().end());
  ASSERT_EQ(words.size(), 9U);
  EXPECT_EQ(words[0], "-c");
  EXPECT_THAT(std::vector(words.begin() + 3, words.end()),
              ElementsAre("/bin/bash", "-l", "-c", it.work.script, "train.sh", "one"));
  it.work.script = "#!/usr/bin/env python3\nprint()\n";
  ASSERT_EQ(it.put(), "");
  EXPECT_EQ(*it.spec.command().rbegin(), "one");
  EXPECT_EQ(it.spec.command(3), "/usr/bin/env");
}

TEST(ContainerOptions, ScriptsThatNoArgumentCanHoldAreRefused) {
  Contained it;
  it.work.words = {"a"};
  it.work.script = "#!/usr/bin/perl\n";
  EXPECT_THAT(it.put(), HasSubstr("/usr/bin/perl"));
  it.work.script = "#!/bin/sh\n" + std::string(100'000, '#');
  EXPECT_THAT(it.put(), HasSubstr("96 KiB"));
}

TEST(ContainerOptions, NoVariableOfTheCallerGoesAlongUnlessItIsNamed) {
  Contained it({{"container-env", "DATA"}, {"export", "ALL,SEED=7"}});
  it.work.words = {"tool"};
  ASSERT_EQ(it.put(), "");
  const auto& variables = it.spec.environment();
  EXPECT_FALSE(variables.contains("KEY"));
  EXPECT_EQ(variables.at("DATA"), "/d");
  EXPECT_EQ(variables.at("SEED"), "7");
  EXPECT_EQ(variables.at("SLURM_NTASKS"), "2");
}

TEST(ContainerOptions, FoldersAndTheEntryPointAreTheOnesOfTheOptions) {
  Contained it({{"container-mounts", "/data:/in:ro"},
                {"container-mount-home", ""},
                {"container-workdir", "/in"},
                {"container-entrypoint", ""}});
  it.work.words = {"tool", "x"};
  ASSERT_EQ(it.put(), "");
  EXPECT_THAT(it.spec.mounts(), ElementsAre("/data:/in:ro", "/home/ann:/home/ann"));
  EXPECT_EQ(it.spec.container_workdir(), "/in");
  EXPECT_FALSE(it.spec.has_entrypoint());
  EXPECT_EQ(it.spec.command(0), "/bin/sh");
  it.caller.home.clear();
  EXPECT_THAT(it.put(), HasSubstr("--container-mount-home: "));
}

TEST(ContainerOptions, FilesThatOnlyTheJobCouldOpenAreRefused) {
  Contained it;
  it.work.words = {"tool"};
  it.work.variables["SLURM_SHIM_OUTPUT"] = "out-%t";
  EXPECT_THAT(it.put(), HasSubstr("--output: "));
}

TEST(ContainerOptions, WithoutAnImageTheyMeanNothing) {
  Settings settings;
  settings.set(Option{"container-mounts"}, "/a");
  EXPECT_THAT(container_warnings(settings),
              ElementsAre(HasSubstr("--container-mounts is ignored")));
  settings.set(Option{"container-image"}, "a");
  EXPECT_THAT(container_warnings(settings), ElementsAre());
}

}  // namespace
}  // namespace gpu_platform::shims
