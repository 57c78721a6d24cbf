#include "model/user_range.h"

#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

TEST(UserRange, HasNoAccountOfTheSystemWhateverTheSiteSays) {
  const UserRange usual;
  const UserRange widest{.min_uid = 1, .max_uid = 4'294'967'295, .of_platform = {990, 2000}};
  const UserRange of_ldap{.min_uid = 1000, .max_uid = 2'000'000'000};
  struct Row {
    std::uint32_t uid;
    bool usual, widest, of_ldap;
  };
  const Row rows[] = {
      {0, false, false, false},  // root, which is asked about elsewhere
      {1, false, true, false},
      {999, false, true, false},
      {1000, true, true, true},
      {990, false, false, false},  // a part of the platform
      {2000, true, false, true},
      {60'000, true, true, true},
      {60'001, false, true, true},
      {64'030, false, true, true},  // slurm of Debian
      {64'055, false, true, true},  // libvirt-qemu
      {61'184, false, true, true},  // DynamicUser= of systemd
      {65'533, false, true, true},
      {65'534, false, false, false},  // the kernel's overflow number
      {65'535, false, false, false},  // (uid_t) -1 with 16 bits
      {65'536, false, true, true},
      {1'234'567'890, false, true, true},
      {4'294'967'293, false, true, false},
      {4'294'967'294, false, false, false},  // the overflow number of 32-bit NFS
      {4'294'967'295, false, false, false},  // (uid_t) -1
  };
  for (const Row& row : rows) {
    EXPECT_EQ(error_in_user(row.uid, usual).empty(), row.usual) << row.uid;
    EXPECT_EQ(error_in_user(row.uid, widest).empty(), row.widest) << row.uid;
    EXPECT_EQ(error_in_user(row.uid, of_ldap).empty(), row.of_ldap) << row.uid;
  }
}

TEST(UserRange, NamesTheKeyThatASiteMayChange) {
  EXPECT_EQ(error_in_user(999, {}),
            "user 999 is an account of the system, below 1000 (execution.min_uid, --min-uid of the "
            "launcher)");
  EXPECT_EQ(error_in_user(64'030, {}),
            "user 64030 is an account of the system, above 60000 (a site whose users have higher "
            "numbers raises execution.max_uid, and --max-uid of the launcher)");
  EXPECT_EQ(error_in_user(4'294'967'295, {}), "4294967295 is not a user");
  EXPECT_EQ(error_in_user(1200, {.of_platform = {1200}}),
            "user 1200 is an account of the system: a part of the platform runs as it");
}

TEST(UserRange, EndsWhereTheHostsLoginDefsSay) {
  EXPECT_EQ(max_uid_in("UID_MIN 1000\n#UID_MAX 1\nUID_MAX\t\t\t60000\nSUB_UID_MAX 600100000\n"),
            60'000U);
  EXPECT_EQ(max_uid_in("  UID_MAX 70000 # LDAP"), 70'000U);
  EXPECT_EQ(max_uid_in("UID_MAX 1\nUID_MAX 2000\n"), 2000U) << "the last one counts";
  for (const std::string_view text : {"", "UID_MAX", "UID_MAX many\n", "UID_MAX -1", "UID_MAX 0",
                                      "UID_MAX 99999999999", "SUB_UID_MAX 7", "UID_MAXX 7"}) {
    EXPECT_EQ(max_uid_in(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace gpu_platform::model
