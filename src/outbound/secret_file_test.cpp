#include "outbound/secret_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "outbound/folder_fixture.h"
#include "outbound/signature.h"

namespace gpu_platform::outbound {
namespace {

std::string problem(const std::string& path) {
  const base::Result<std::string> secret = read_secret(path);
  return secret ? "" : secret.error().message;
}

TEST(SecretFile, IsReadWithoutItsLineEnd) {
  const Folder folder;
  const base::Result<std::string> secret = read_secret(folder.secret("key", " hunter2\n"));
  ASSERT_TRUE(secret) << secret.error().message;
  EXPECT_EQ(*secret, "hunter2");
}

TEST(SecretFile, IsRefusedWhereAllMayReadIt) {
  const Folder folder;
  const std::string path = folder.secret("key", "hunter2");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  EXPECT_EQ(problem(path), "");
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_NE(problem(path).find("chmod 0600 " + path), std::string::npos) << problem(path);
  EXPECT_EQ(problem(path).find("hunter2"), std::string::npos);
}

TEST(SecretFile, OfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files to others";
  const Folder folder;
  const std::string path = folder.secret("key", "hunter2");
  ASSERT_EQ(chown(path.c_str(), 4711, 0), 0);
  EXPECT_NE(problem(path).find("user id 4711"), std::string::npos) << problem(path);
}

TEST(SecretFile, IsARegularFileWithAText) {
  const Folder folder;
  EXPECT_NE(problem(folder.path()), "");
  EXPECT_NE(problem(folder.path() + "/none").find("No such file"), std::string::npos);
  EXPECT_NE(problem(folder.secret("empty", " \n")).find("is empty"), std::string::npos);
  const std::string fifo = folder.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_NE(problem(fifo).find("no regular file"), std::string::npos);
  const std::string large = folder.secret("large", std::string(65 * 1024, 'x'));
  EXPECT_NE(problem(large).find("too large"), std::string::npos);
}

// The second test of RFC 4231.
TEST(Signature, IsThatOfTheStandard) {
  EXPECT_EQ(hmac_sha256("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace gpu_platform::outbound
