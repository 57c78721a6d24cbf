#include "bin/network_listener.h"

#include <gtest/gtest.h>

namespace gpu_platform::bin {
namespace {

TEST(ListenerOptions, WithoutAddressesThereAreNoPlaces) {
  EXPECT_TRUE(listener_options({}).places.empty());
}

TEST(ListenerOptions, EachAddressIsAPlaceOfItsDoor) {
  config::Configuration site;
  site.rest_addresses.words = {"127.0.0.1:8443", "[::1]:8443"};
  site.grpc_addresses.words = {"127.0.0.1:8444"};
  const auto places = listener_options(site).places;
  ASSERT_EQ(places.size(), 3U);
  EXPECT_EQ(places[0].door, listener::Door::kRest);
  EXPECT_EQ(places[0].host, "127.0.0.1");
  EXPECT_EQ(places[0].port, 8443);
  EXPECT_EQ(places[1].host, "::1") << "without brackets";
  EXPECT_EQ(places[2].door, listener::Door::kGrpc);
  EXPECT_EQ(places[2].port, 8444);
}

TEST(ListenerOptions, LimitsAndNamesAreThoseOfTheConfiguration) {
  config::Configuration site;
  site.api_threads = 3;
  site.rest_connections = 70;
  site.rest_connections_per_address = 7;
  site.api_body_bytes = base::Bytes(4096);
  site.rest_host_names.words = {"gpu.example"};
  site.rest_origins.words = {"https://web.example"};
  const listener::Settings settings = listener_options(site).settings;
  EXPECT_EQ(settings.threads, 3U);
  EXPECT_EQ(settings.connections, 70U);
  EXPECT_EQ(settings.connections_per_address, 7U);
  EXPECT_EQ(settings.body_bytes, 4096U);
  EXPECT_EQ(settings.host_names, site.rest_host_names.words);
  EXPECT_EQ(settings.web_origins, site.rest_origins.words);
}

TEST(ListenerOptions, TlsIsThereWithItsFiles) {
  config::Configuration site;
  EXPECT_FALSE(listener_options(site).certificate);
  EXPECT_FALSE(listener_options(site).settings.asks_for_certificates);
  site.tls_certificate.path = "/c.pem";
  site.tls_key.path = "/k.pem";
  site.tls_client_ca.path = "/ca.pem";
  const auto options = listener_options(site);
  ASSERT_TRUE(options.certificate);
  EXPECT_EQ(options.certificate->certificate, "/c.pem");
  EXPECT_EQ(options.certificate->key, "/k.pem");
  EXPECT_TRUE(options.settings.asks_for_certificates);
}

}  // namespace
}  // namespace gpu_platform::bin
