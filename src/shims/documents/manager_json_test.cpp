#include "shims/documents/manager_json.h"

#include <gtest/gtest.h>

#include "shims/views/manager_rows.h"

namespace gpu_platform::shims {
namespace {

using cli::Json;

TEST(ManagerDocuments, TellWhatTheTablesTell) {
  Site site = usual_site();
  site.qos = {{"urgent", "HIGH", base::hours(4), 8}};
  const Json qos = qos_document(DocumentForm::k42, qos_rows(site))["qos"][0];
  EXPECT_EQ(qos["limits"]["max"]["wall_clock"]["per"]["job"], set_number(240));
  EXPECT_EQ(qos["limits"]["max"]["tres"]["per"]["job"][0]["count"], 8);
  EXPECT_EQ(qos["flags"], Json::array({"DENY_LIMIT"}));
  EXPECT_EQ(qos["usage_factor"]["number"], 1.0);
  const ManagedSite managed{{}, site, {}};
  const Json association =
      associations_document(DocumentForm::k40, association_rows(managed))["associations"][1];
  EXPECT_EQ(association["user"], "root");
  EXPECT_EQ(association["id"]["id"], 2);
  EXPECT_EQ(association["qos"], Json::array({"urgent"}));
  EXPECT_EQ(users_document(user_rows(managed))["users"][0]["default"]["account"], "root");
}

}  // namespace
}  // namespace gpu_platform::shims
