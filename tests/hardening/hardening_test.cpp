#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "weaknesses.h"

// The programs that we ship, as they were linked.

namespace gpu_platform::hardening {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

struct Shipped {
  std::string name;
  std::string path;
  Linked linked = Linked::kProgram;
};

class ShippedFile : public testing::TestWithParam<Shipped> {};

TEST_P(ShippedFile, IsHardToTakeOver) {
  const auto file = ElfFile::parse(bytes_of(GetParam().path));
  ASSERT_TRUE(file) << GetParam().path;
  EXPECT_THAT(weaknesses(*file, GetParam().linked), IsEmpty()) << GetParam().path;
}

INSTANTIATE_TEST_SUITE_P(
    All, ShippedFile,
    testing::Values(Shipped{"daemon", GPU_PLATFORM}, Shipped{"slurm", GPU_PLATFORM_SLURM},
                    Shipped{"probe", GPU_PLATFORM_PROBE},
                    Shipped{"listener", GPU_PLATFORM_LISTENER}, Shipped{"emulator", GPU_EMULATOR},
                    Shipped{"workload", GPU_WORKLOAD},
                    Shipped{"node", GPU_PLATFORM_NODE, Linked::kStaticProgram},
                    Shipped{"register", GPU_EMULATOR_REGISTER, Linked::kStaticProgram},
                    Shipped{"container", GPU_PLATFORM_CONTAINER},
                    Shipped{"driver", GPU_PLATFORM_DRIVER},
                    Shipped{"start", GPU_PLATFORM_START, Linked::kBareProgram},
                    Shipped{"nvml", EMULATED_NVML, Linked::kLibrary}),
    [](const auto& instance) { return instance.param.name; });

// ---- what would be found

TEST(Weaknesses, ProgramBuiltWithNothingOnHasThemAll) {
  const auto file = ElfFile::parse(bytes_of(UNPROTECTED));
  ASSERT_TRUE(file);
  std::vector<std::string> expected = {"it is loaded at an address that is known",
                                       "it is not a position-independent program",
                                       "its stack can be executed",
                                       "its relocated tables stay writable",
                                       "functions are bound late, so their table stays writable",
                                       "it looks for libraries in folders of its own",
                                       "no function ends at __stack_chk_fail"};
  if (file->header.e_machine == EM_X86_64) {
    expected.insert(expected.end(),
                    {"no function of ours checks its stack",
                     "a function of ours does not begin with a landing pad",
                     "no function of ours calls a checked function of the C library"});
  }
  EXPECT_THAT(weaknesses(*file, Linked::kProgram), testing::UnorderedElementsAreArray(expected));
}

// One that is well, with one thing in its headers changed.
class Damaged : public testing::Test {
 protected:
  void SetUp() override {
    const auto parsed = ElfFile::parse(bytes_);
    ASSERT_TRUE(parsed);
    file_ = *parsed;
  }

  // Writes the segment's header back.
  std::vector<std::string> with(std::size_t segment, const Elf64_Phdr& changed) {
    std::string bytes = bytes_;
    std::memcpy(bytes.data() + file_.header.e_phoff + segment * sizeof changed, &changed,
                sizeof changed);
    const auto file = ElfFile::parse(bytes);
    return file ? weaknesses(*file, Linked::kStaticProgram) : std::vector<std::string>{"no file"};
  }
  std::size_t find(std::uint32_t type, std::uint32_t flags) const {
    std::size_t at = 0;
    while (at < file_.segments.size() &&
           (file_.segments[at].p_type != type || (file_.segments[at].p_flags & flags) != flags)) {
      ++at;
    }
    return at;
  }

  const std::string bytes_ = bytes_of(GPU_EMULATOR_REGISTER);
  ElfFile file_;
};

TEST_F(Damaged, CodeThatCanBeWrittenIsFound) {
  const std::size_t code = find(PT_LOAD, PF_X);
  ASSERT_LT(code, file_.segments.size());
  Elf64_Phdr changed = file_.segments[code];
  changed.p_flags |= PF_W;
  EXPECT_THAT(with(code, changed), ElementsAre("a segment can be written and executed"));
}

TEST_F(Damaged, StackThatCanBeExecutedIsFound) {
  const std::size_t stack = find(PT_GNU_STACK, PF_W);
  ASSERT_LT(stack, file_.segments.size());
  Elf64_Phdr changed = file_.segments[stack];
  changed.p_flags |= PF_X;
  EXPECT_THAT(with(stack, changed), ElementsAre("its stack can be executed"));
}

TEST_F(Damaged, NeedOfALoaderIsFound) {
  const std::size_t other = find(PT_GNU_STACK, 0);
  ASSERT_LT(other, file_.segments.size());
  Elf64_Phdr changed = file_.segments[other];
  changed.p_type = PT_INTERP;
  EXPECT_THAT(with(other, changed),
              UnorderedElementsAre("it needs a loader or a library of the host",
                                   "it does not say that its stack is only data"));
}

TEST(ElfFile, RefusesWhatIsNone) {
  const std::string whole = bytes_of(GPU_EMULATOR_REGISTER);
  EXPECT_FALSE(ElfFile::parse(""));
  EXPECT_FALSE(ElfFile::parse("#!/bin/sh\n" + std::string(100, 'x')));
  EXPECT_FALSE(ElfFile::parse(whole.substr(0, whole.size() / 2)));  // its sections are at the end
}

}  // namespace
}  // namespace gpu_platform::hardening
