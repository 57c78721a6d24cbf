#include "bin/site_files.h"

#include <gtest/gtest.h>

#include "bin/folder_fixture.h"

namespace gpu_platform::bin {
namespace {

class SiteFilesTest : public ::testing::Test {
 protected:
  TestFolder folder_;
  config::Configuration site_;
};

TEST_F(SiteFilesTest, ThatAreNotNamedAreNotRead) {
  const auto places = read_network_places(site_);
  ASSERT_TRUE(places);
  EXPECT_TRUE(places->empty());
  const auto keys = read_web_token_keys(site_);
  ASSERT_TRUE(keys);
  EXPECT_EQ(*keys, nullptr);
  api::CertificateProver certificates;
  EXPECT_TRUE(read_authorities(site_, certificates));
}

TEST_F(SiteFilesTest, PlacesOfNodesAreRead) {
  site_.network_file.path = folder_.write("network", "dgx-[1-2]  rack=r1\n");
  const auto places = read_network_places(site_);
  ASSERT_TRUE(places) << places.error().message;
  EXPECT_EQ(places->size(), 2U);
  EXPECT_EQ(places->at("dgx-2").rack, "r1");
}

TEST_F(SiteFilesTest, AnErrorNamesTheKeyAndTheFile) {
  site_.network_file.path = folder_.path() + "/none";
  const auto places = read_network_places(site_);
  ASSERT_FALSE(places);
  EXPECT_EQ(places.error().field, "cluster.network_file");
  EXPECT_EQ(places.error().message, "cluster.network_file: " + folder_.path() +
                                        "/none cannot be read: No such file or directory");
  site_.network_file.path = folder_.write("network", "dgx-[1-2]  colour=red\n");
  EXPECT_FALSE(read_network_places(site_));

  site_.openid_keys.path = folder_.path() + "/keys.json";
  const auto keys = read_web_token_keys(site_);
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().field, "access.openid.keys");
  EXPECT_TRUE(keys.error().message.starts_with("access.openid.keys: " + site_.openid_keys.path));

  site_.tls_client_ca.path = folder_.path() + "/ca.pem";
  api::CertificateProver certificates;
  const auto authorities = read_authorities(site_, certificates);
  ASSERT_FALSE(authorities);
  EXPECT_EQ(authorities.error().message,
            "api.tls.client_ca: " + site_.tls_client_ca.path + ": No such file or directory");
  site_.tls_client_ca.path = folder_.write("ca.pem", "no certificate");
  EXPECT_FALSE(read_authorities(site_, certificates));
}

}  // namespace
}  // namespace gpu_platform::bin
