// Tokens as people see them: users and root, each a process with its own rights, make, list and
// revoke tokens, across a restart; and their secrets are nowhere that the daemon writes.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "harness.h"
#include "several_users.h"

namespace gpu_platform::e2e {
namespace {

using nlohmann::json;

class Tokens : public SeveralUsers {
 protected:
  Tokens() : SeveralUsers({.config = "api:\n  max_token_lifetime: 100d\n"}) {}

  // Returns the secret.
  std::string make(const char* user, std::vector<std::string> options) const {
    options.insert(options.begin(), {"token", "create", "-q", "--name"});
    const Finished done = by(user, options);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_TRUE(done.out.starts_with("gpt_") && done.out.ends_with("\n")) << done.out;
    return done.out.substr(0, done.out.find('\n'));
  }
  std::string listed(const char* user, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"token", "list", "-o", "name"});
    const Finished done = by(user, options);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out;
  }
  // The files below the folder that have the bytes.
  static std::vector<std::string> files_with(const std::string& folder, const std::string& bytes) {
    std::vector<std::string> found;
    std::size_t looked_at = 0;
    for (const auto& entry : entries_below(folder)) {
      if (!entry.is_regular_file()) continue;
      const std::string text = read_file(entry.path());
      ++looked_at;
      if (text.find(bytes) != std::string::npos) found.push_back(entry.path());
    }
    EXPECT_GT(looked_at, 3u);
    return found;
  }
  // Of base64url; what the store would keep if it kept the secret itself.
  static std::string decoded(std::string_view text) {
    constexpr std::string_view kLetters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::string bytes;
    unsigned bits = 0;
    int count = 0;
    for (const char c : text) {
      bits = bits << 6 | static_cast<unsigned>(kLetters.find(c));
      count += 6;
      if (count < 8) continue;
      count -= 8;
      bytes.push_back(static_cast<char>(bits >> count & 0xff));
    }
    return bytes;
  }
};

TEST_F(Tokens, AreMadeListedAndRevokedByTheirUsersAlsoAfterAKill) {
  make(kAnn, {"laptop", "--expires", "30d"});
  make(kAnn, {"nightly", "--role", "viewer"});
  make(kBob, {"laptop"});
  EXPECT_EQ(listed(kAnn), "nightly\nlaptop\n");
  EXPECT_EQ(listed(kBob), "laptop\n");
  EXPECT_EQ(listed("root", {"--all-users"}), "laptop\nnightly\nlaptop\n");
  EXPECT_EQ(by(kBob, {"token", "list", "--all-users"}).exit_code, 4);
  EXPECT_EQ(by(kBob, {"token", "list", "--user", kAnn}).exit_code, 4);

  daemon_.kill_now();
  start();
  EXPECT_EQ(listed(kAnn), "nightly\nlaptop\n");
  EXPECT_EQ(by(kBob, {"token", "revoke", "1"}).exit_code, 3);
  EXPECT_EQ(by(kBob, {"token", "revoke", "nightly"}).exit_code, 3);
  EXPECT_EQ(by(kAnn, {"token", "revoke", "laptop"}).out,
            std::string("token laptop of ") + kAnn + " is revoked\n");
  EXPECT_EQ(by("root", {"token", "revoke", "laptop", "--user", kBob}).exit_code, 0);
  EXPECT_EQ(listed("root", {"--all-users"}), "nightly\n");

  EXPECT_EQ(daemon_.terminate(), 0);
  start();
  EXPECT_EQ(listed("root", {"--all-users"}), "nightly\n") << "revoked is revoked";
}

TEST_F(Tokens, AreRefusedBeyondWhatTheirMakerMayGive) {
  EXPECT_EQ(by(kAnn, {"token", "create", "--name", "x", "--role", "admin"}).exit_code, 4);
  EXPECT_EQ(by(kAnn, {"token", "create", "--name", "x", "--user", kBob}).exit_code, 4);
  EXPECT_EQ(by("root", {"token", "create", "--name", "x"}).exit_code, 4);
  EXPECT_EQ(by("root", {"token", "create", "--name", "x", "--user", "no-such"}).exit_code, 3);
  const Finished too_long = by(kAnn, {"token", "create", "--name", "x", "--expires", "101d"});
  EXPECT_EQ(too_long.exit_code, 4);
  EXPECT_NE(too_long.err.find("api.max_token_lifetime"), std::string::npos) << too_long.err;
  EXPECT_EQ(by(kAnn, {"token", "create", "--name", "x", "--expires", "never"}).exit_code, 4);
  EXPECT_EQ(listed("root", {"--all-users"}), "");

  make("root", {"x", "--user", kBob, "--role", "admin"});
  EXPECT_EQ(listed(kBob), "x\n");
}

TEST_F(Tokens, ARepeatedRequestMakesOneTokenAndShowsItsSecretOnceAlsoAfterAKill) {
  make(kAnn, {"laptop", "--request-id", "k-1"});
  daemon_.kill_now();
  start();
  const Finished again =
      by(kAnn, {"token", "create", "-q", "--name", "laptop", "--request-id", "k-1"});
  EXPECT_EQ(again.exit_code, 4);
  EXPECT_EQ(again.out, "");
  EXPECT_NE(again.err.find("token revoke 1"), std::string::npos) << again.err;
  EXPECT_EQ(listed(kAnn), "laptop\n");
}

TEST_F(Tokens, OneWhoseTimeIsOverLeavesTheList) {
  make(kAnn, {"brief", "--expires", "3s"});
  EXPECT_TRUE(eventually([&] { return listed(kAnn).empty(); }));
}

TEST_F(Tokens, SecretsAreInNoFileOfTheDaemonAndInNoLogOrTrail) {
  const std::string secret = make(kAnn, {"laptop"});
  EXPECT_EQ(by(kAnn, {"token", "create", "--name", "laptop"}).exit_code, 4);
  EXPECT_EQ(by(kAnn, {"token", "revoke", "laptop"}).exit_code, 0);
  const std::string other = make(kAnn, {"other"});
  const json trail = daemon_.json({"audit", "list"});
  std::vector<std::string> told;
  for (const json& entry : trail["entries"]) {
    const std::string action = entry["action"];
    if (!action.ends_with("_TOKEN")) continue;
    told.push_back(action + " " + entry["target"].get<std::string>() + " by " +
                   entry["user"].get<std::string>() + " " + entry["outcome"].get<std::string>());
  }
  const std::string ann = kAnn;
  EXPECT_EQ(told, (std::vector<std::string>{"CREATE_TOKEN other by " + ann + " OK",
                                            "REVOKE_TOKEN laptop by " + ann + " OK",
                                            "CREATE_TOKEN laptop by " + ann + " REFUSED",
                                            "CREATE_TOKEN laptop by " + ann + " OK"}));
  const std::string text = trail.dump();
  EXPECT_EQ(daemon_.terminate(), 0);  // with a snapshot
  for (const std::string& each : {secret, other}) {
    ASSERT_GT(each.size(), 43u);
    const std::string letters = each.substr(each.size() - 43);
    const std::string bytes = decoded(letters);
    ASSERT_EQ(bytes.size(), 32u);
    for (const std::string& form : {letters, bytes}) {
      EXPECT_EQ(files_with(daemon_.directory(), form), std::vector<std::string>());
      EXPECT_EQ(daemon_.log().find(form), std::string::npos);
      EXPECT_EQ(text.find(form), std::string::npos);
    }
  }
  // What the store does keep can be found so.
  EXPECT_FALSE(files_with(daemon_.data_dir(), "laptop").empty());
}

}  // namespace
}  // namespace gpu_platform::e2e
