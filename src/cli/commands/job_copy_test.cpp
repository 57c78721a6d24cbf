#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/jobs/pack.h"
#include "cli/jobs/tar.h"
#include "cli/jobs/unpack.h"

namespace gpu_platform::cli {
namespace {

namespace fs = std::filesystem;

class JobCopyTest : public testing::Test {
 protected:
  JobCopyTest() {
    std::string name = fs::temp_directory_path() / "gp-copy-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~JobCopyTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }

  static std::string packed(Packer& packer) {
    std::string archive;
    char bytes[1000];  // no multiple of a block
    while (const std::size_t count = packer.read(bytes)) archive.append(bytes, count);
    return archive;
  }
  // In pieces of that size.
  static base::Status unpack(Unpacker& unpacker, std::string_view archive,
                             std::size_t piece = 777) {
    TarParser parser({[&](const TarEntry& entry) { return unpacker.entry(entry); },
                      [&](std::string_view bytes) { return unpacker.content(bytes); },
                      [&] { return unpacker.end_of_entry(); }});
    for (; !archive.empty(); archive.remove_prefix(std::min(piece, archive.size()))) {
      TRY(parser.push(archive.substr(0, piece)));
    }
    EXPECT_TRUE(parser.is_complete());
    return unpacker.finish();
  }
  // An archive of one file with this name.
  static std::string file_named(const std::string& name) {
    return tar_header({.name = name, .mode = 0644, .size = 1}) + "x" + std::string(511, '\0') +
           tar_end();
  }
  static std::string link(const std::string& name, const std::string& target) {
    return tar_header(
        {.name = name, .type = TarEntry::Type::kLink, .mode = 0777, .target = target});
  }

  std::string folder_;
};

TEST_F(JobCopyTest, ATreeComesOutAsItWentIn) {
  const std::string deep = std::string(120, 'd') + "/" + std::string(120, 'f');
  fs::create_directories(path("in/" + std::string(120, 'd')));
  fs::create_directory(path("in/empty"));
  write("in/large", std::string(100'000, 'x') + "end");
  write("in/nothing", "");
  write("in/" + deep, "deep");
  ::chmod(path("in/large").c_str(), 04750);
  fs::create_symlink("large", path("in/link"));
  const timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ::utimensat(AT_FDCWD, path("in/large").c_str(), times, 0);

  auto packer = Packer::open(path("in"), "tree");
  ASSERT_TRUE(packer);
  const std::string archive = packed(*packer);
  EXPECT_EQ(packer->files(), 3U);
  Unpacker unpacker("tree", path("out"), 022);
  const base::Status unpacked = unpack(unpacker, archive);
  ASSERT_TRUE(unpacked) << unpacked.error().message;

  EXPECT_EQ(read("out/large"), read("in/large"));
  EXPECT_EQ(read("out/" + deep), "deep");
  EXPECT_TRUE(fs::is_directory(path("out/empty")));
  EXPECT_EQ(fs::file_size(path("out/nothing")), 0U);
  EXPECT_EQ(fs::read_symlink(path("out/link")), "large");
  struct stat is{};
  ASSERT_EQ(::stat(path("out/large").c_str(), &is), 0);
  EXPECT_EQ(is.st_mode & 07777U, 0750U) << "no program gets the rights of another user";
  EXPECT_EQ(is.st_mtime, 1'000'000'000);
  EXPECT_EQ(unpacker.files(), 3U);
  EXPECT_TRUE(unpacker.left_out().empty());
}

TEST_F(JobCopyTest, AFileGetsTheNameThatWasAskedFor) {
  write("in", "text");
  write("out", "former");
  auto packer = Packer::open(path("in"), "in");
  ASSERT_TRUE(packer);
  Unpacker unpacker("in", path("out"), 0);
  ASSERT_TRUE(unpack(unpacker, packed(*packer), 1));
  EXPECT_EQ(read("out"), "text");
}

TEST_F(JobCopyTest, NamesThatLeadElsewhereAreRefused) {
  for (const std::string name :
       {"../x", "in/../../x", "/etc/x", "other", "in/..", "in/sub/../../../x"}) {
    Unpacker unpacker("in", path("out"), 0);
    EXPECT_FALSE(unpack(unpacker, file_named(name))) << name;
  }
  Unpacker rootless("", path("out"), 0);
  EXPECT_FALSE(unpack(rootless, file_named("../x")));
  EXPECT_FALSE(fs::exists(path("x")));
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(JobCopyTest, NoLinkIsFollowedAndNoneThatLeadsOutIsMade) {
  fs::create_directory(path("victim"));
  const std::string directory =
      tar_header({.name = "in/", .type = TarEntry::Type::kDirectory, .mode = 0755});
  Unpacker inside("in", path("one"), 0);
  EXPECT_FALSE(unpack(inside, directory + link("in/sub", ".") + file_named("in/sub/x")));
  Unpacker outside("in", path("two"), 0);
  EXPECT_TRUE(unpack(outside, directory + link("in/a", "../victim") + link("in/b", "/etc") +
                                  link("in/c", "d/../../victim") + tar_end()));
  EXPECT_EQ(outside.left_out().size(), 3U);
  // Links of before are not followed either.
  fs::create_directory(path("three"));
  fs::create_directory_symlink(path("victim"), path("three/sub"));
  Unpacker former("in", path("three"), 0);
  EXPECT_FALSE(unpack(former, directory + file_named("in/sub/x")));
  EXPECT_TRUE(fs::is_empty(path("victim")));
}

TEST_F(JobCopyTest, AFileReplacesALinkAndDoesNotWriteThroughIt) {
  write("victim", "safe");
  fs::create_symlink(path("victim"), path("out"));
  Unpacker unpacker("in", path("out"), 0);
  ASSERT_TRUE(unpack(unpacker, file_named("in")));
  EXPECT_EQ(read("victim"), "safe");
  EXPECT_EQ(read("out"), "x");
}

TEST_F(JobCopyTest, DamagedArchivesAreRefused) {
  std::string archive = file_named("in");
  archive[5] = 'y';
  Unpacker unpacker("in", path("out"), 0);
  EXPECT_FALSE(unpack(unpacker, archive));
}

TEST_F(JobCopyTest, PaxNamesAndSizesCount) {
  // As bsdtar and Python write them.
  const std::string name = "in/" + std::string(150, 'n');
  std::string record = fmt::format(" path={}\n", name);
  record = fmt::format("{}{}", record.size() + 3, record);
  std::string header = tar_header({.name = "PaxHeader", .size = record.size()});
  header[156] = 'x';
  std::uint64_t sum = 0;
  header.replace(148, 8, 8, ' ');
  for (const char c : header) sum += static_cast<unsigned char>(c);
  header.replace(148, 7, fmt::format("{:06o}", sum) + std::string(1, '\0'));
  Unpacker unpacker("in", path("out"), 0);
  const base::Status unpacked =
      unpack(unpacker, header + record + std::string(tar_padding(record.size()), '\0') +
                           file_named("in/short"));
  ASSERT_TRUE(unpacked) << unpacked.error().message;
  EXPECT_EQ(read("out/" + std::string(150, 'n')), "x");
}

TEST_F(Cli, CopyWantsOnePathInAJob) {
  EXPECT_EQ(call({"jobs", "cp", "a", "b"}), 2);
  EXPECT_TRUE(has(err(), "write one as ID:PATH")) << err();
  EXPECT_EQ(call({"jobs", "cp", "1:a", "2:b"}), 2);
  EXPECT_EQ(call({"jobs", "cp", "./12:a", "b"}), 2) << "a name here may have a colon";
}

}  // namespace
}  // namespace gpu_platform::cli
