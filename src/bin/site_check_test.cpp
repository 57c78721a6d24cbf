#include "bin/site_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::bin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> keys_of(const std::vector<config::Problem>& problems) {
  std::vector<std::string> keys;
  for (const config::Problem& problem : problems) keys.push_back(problem.key);
  return keys;
}

TEST(SiteCheck, FindsNothingInTheDefaults) {
  const cli::SiteFindings found = check_site({});
  EXPECT_THAT(keys_of(found.problems), IsEmpty());
  EXPECT_THAT(keys_of(found.notes), IsEmpty());
}

TEST(SiteCheck, FindsFilesThatServeWouldEndWithAndTheirPlaces) {
  config::Configuration site;
  site.tls_certificate.path = "/nope/crt.pem";
  site.tls_key.path = "/nope/key.pem";
  site.network_file.path = "/nope/network";
  site.prolog.path = "/nope/prolog";
  site.kubernetes_kubeconfig.path = "/nope/kubeconfig";
  site.places = {{"execution.prolog", "", 7, 3, ""}};
  const cli::SiteFindings found = check_site(site);
  EXPECT_THAT(keys_of(found.problems),
              ElementsAre("cluster.network_file", "api.tls.certificate", "execution.prolog",
                          "engines.kubernetes.kubeconfig"));
  EXPECT_EQ(found.problems[2].line, 7);
  EXPECT_THAT(found.problems[2].message, HasSubstr("/nope/prolog: No such file"));
}

TEST(SiteCheck, FindsRulesOfHealthThatThereAreNot) {
  config::Configuration site;
  site.policy.health_rules = {{"xid-31", "", "SHOOT", ""}};
  EXPECT_THAT(keys_of(check_site(site).problems), ElementsAre("health.rules[0].action"));
}

TEST(SiteCheck, NotesUsersThatThisHostDoesNotHaveOnce) {
  config::Configuration site;
  site.policy.organisation =
      model::Organisation{.teams = {{.name = "lab", .members = {{"no-such-user", 1}, {"root", 1}}},
                                    {.name = "two", .members = {{"no-such-user", 1}}}}};
  site.access.roles = {{"no-such-admin", model::Role::kAdmin}};
  const cli::SiteFindings found = check_site(site);
  EXPECT_THAT(keys_of(found.problems), IsEmpty());
  ASSERT_THAT(keys_of(found.notes), ElementsAre("teams", "access.roles"));
  EXPECT_EQ(found.notes[0].message, "teams: there is no user 'no-such-user' on this machine");
}

}  // namespace
}  // namespace gpu_platform::bin
