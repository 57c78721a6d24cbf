#include <gtest/gtest.h>

#include "config/effective.h"
#include "config/yaml/reader.h"

namespace gpu_platform::config {
namespace {

std::vector<std::string> errors_of(std::string_view yaml) {
  std::vector<std::string> messages;
  const Checked checked = parse_configuration(yaml);
  if (checked) return messages;
  for (const Problem& problem : checked.error()) {
    messages.push_back(describe(problem, "f"));
  }
  return messages;
}

using Messages = std::vector<std::string>;

TEST(Access, IsReadWithRolesCoordinatorsAndVisibility) {
  const auto checked = parse_configuration(R"(
access:
  default_role: viewer
  admins_act_as_users: true
  roles:
    operator: [ann, bob]
    admin: [carol]
    user: [dan]
  visibility: {jobs: team, output: all}
teams:
  - name: vision
    coordinators: [ann, eve]
)");
  ASSERT_TRUE(checked.has_value());
  const model::AccessSettings& access = checked->access;
  EXPECT_EQ(access.default_role, model::Role::kViewer);
  EXPECT_TRUE(access.admins_act_as_users);
  EXPECT_EQ(access.roles.find("bob")->second, model::Role::kOperator);
  EXPECT_EQ(access.roles.find("carol")->second, model::Role::kAdmin);
  EXPECT_EQ(access.roles.find("dan")->second, model::Role::kUser);
  EXPECT_EQ(access.roles.size(), 4U);
  EXPECT_EQ(access.coordinators.at("vision"), (std::set<std::string>{"ann", "eve"}));
  EXPECT_EQ(access.visibility[0], model::Audience::kTeam);
  EXPECT_EQ(access.visibility[1], model::Audience::kOwner);
  EXPECT_EQ(access.visibility[2], model::Audience::kAll);
  EXPECT_EQ(access.visibility[3], model::Audience::kAll);
}

TEST(Access, CertificatesStandForUsers) {
  const auto checked = parse_configuration(R"(
access:
  identities:
    "email:*@example.org": "*"
    "cn:Build machine 7": builder
)");
  ASSERT_TRUE(checked.has_value());
  EXPECT_EQ(checked->identities, (decltype(checked->identities){{"cn:Build machine 7", "builder"},
                                                                {"email:*@example.org", "*"}}));
  const auto refused = [](const std::string& line, std::string_view why) {
    const auto messages = errors_of("access:\n  identities:\n    " + line + "\n");
    return messages.size() == 1 && messages[0].find(why) != std::string::npos;
  };
  EXPECT_TRUE(refused("ann: ann", "must begin with cn:"));
  EXPECT_TRUE(refused("\"cn:\": ann", "must begin with cn:"));
  EXPECT_TRUE(refused("\"cn:ann\": root", "never root"));
  EXPECT_TRUE(refused("\"cn:ann\": 1000", "never root"));
  EXPECT_TRUE(refused("\"cn:ann\": \"*\"", "whole domain"));
  EXPECT_TRUE(refused("\"email:*@example.org\": ann", "whole domain"));
  EXPECT_EQ(errors_of("api: {tls: {client_ca: /etc/ca.pem}}\n").size(), 1U);
}

TEST(Access, IsRefusedWithThePlaceAndWhatIsAllowed) {
  EXPECT_EQ(errors_of("access:\n  roles:\n    operater: [ann]\n"),
            Messages{"f:3:5: unknown key 'operater' in 'access.roles'; did you mean 'operator'?"});
  EXPECT_EQ(errors_of("access:\n  roles:\n    operator: [ann, ann]\n"),
            Messages{"f:3:21: user 'ann' is in 'operator' of 'access.roles' already: list it "
                     "once"});
  EXPECT_EQ(errors_of("access:\n  roles:\n    operator: [ann]\n    admin: [ann]\n"),
            Messages{"f:4:12: user 'ann' has the role operator already: each user has one role"});
  EXPECT_EQ(errors_of("access:\n  roles:\n    admin: [root]\n"),
            Messages{"f:3:13: root in 'admin' of 'access.roles': root may do everything; leave it "
                     "out"});
  EXPECT_EQ(errors_of("access:\n  roles:\n    admin: [1000]\n"),
            Messages{"f:3:13: '1000' in 'admin' of 'access.roles': users are named here, not "
                     "numbered"});
  EXPECT_EQ(errors_of("access:\n  roles:\n    admin: ['%wheel']\n"),
            Messages{"f:3:13: '%wheel' in 'admin' of 'access.roles': groups are not allowed here; "
                     "name the users"});
  EXPECT_EQ(errors_of("access:\n  roles:\n    admin: ann\n").size(), 1U);
  EXPECT_EQ(errors_of("access:\n  default_role: operator\n"),
            Messages{"f:2:17: access.default_role: 'operator' is not viewer or user"});
  EXPECT_EQ(errors_of("access:\n  visibility: {jobs: some}\n"),
            Messages{"f:2:22: access.visibility.jobs: 'some' is not owner, team or all"});
  EXPECT_EQ(errors_of("teams:\n  - name: a\n    coordinators: [root]\n").size(), 1U);
  EXPECT_EQ(errors_of("api:\n  show_commands: all\n"),
            Messages{"f:2:3: the key 'api.show_commands' is called 'access.visibility.commands' "
                     "now"});
}

TEST(Access, AChangeOfRolesIsADifferenceThatAppliesAtOnce) {
  const auto before = parse_configuration("access:\n  roles:\n    admin: [ann]\n");
  const auto after = parse_configuration("access:\n  roles:\n    admin: [bob]\n");
  ASSERT_TRUE(before && after);
  const std::vector<Difference> found = differences(*before, *after);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "access.roles");
  EXPECT_EQ(found[0].effect, Effect::kAnytime);
}

}  // namespace
}  // namespace gpu_platform::config
