#include "model/topology.h"

#include <gtest/gtest.h>

#include <set>

namespace gpu_platform::model {
namespace {

TEST(Topology, EachPairHasAPlaceOfItsOwn) {
  constexpr std::size_t kGpus = 8;
  std::set<std::size_t> places;
  for (std::size_t a = 0; a < kGpus; ++a) {
    for (std::size_t b = a + 1; b < kGpus; ++b) {
      EXPECT_EQ(link_index(kGpus, a, b), places.size());
      EXPECT_EQ(link_index(kGpus, b, a), places.size());
      places.insert(link_index(kGpus, a, b));
    }
  }
  EXPECT_EQ(places.size(), kGpus * (kGpus - 1) / 2);
}

TEST(Topology, WhatIsNotToldIsUnknown) {
  Topology topology;
  EXPECT_EQ(link_between(topology, 4, 1, 2).kind, LinkKind::kUnknown);
  EXPECT_EQ(socket_of(topology, 0), -1);
  topology.numa_nodes = {{.id = 0, .socket = 0}, {.id = 1, .socket = 1}};
  EXPECT_EQ(socket_of(topology, 1), 1);
  EXPECT_EQ(socket_of(topology, -1), -1);
}

TEST(Topology, LinksAreWrittenAsNvidiaSmiDoes) {
  EXPECT_EQ(to_string(GpuLink{LinkKind::kNvLink, 18, 6}), "NV18");
  EXPECT_EQ(to_string(GpuLink{LinkKind::kSystem}), "SYS");
  EXPECT_EQ(to_string(GpuLink{}), "?");
}

TEST(Topology, FewerNvLinksAreFartherAndAnyNvLinkIsNearest) {
  const GpuLink one{LinkKind::kNvLink, 1, 3};
  const GpuLink two{LinkKind::kNvLink, 2, 3};
  EXPECT_TRUE(is_farther(one, two));
  EXPECT_FALSE(is_farther(two, one));
  EXPECT_TRUE(is_farther({LinkKind::kPix}, one));
  EXPECT_TRUE(is_farther({LinkKind::kSystem}, {LinkKind::kNode}));
}

}  // namespace
}  // namespace gpu_platform::model
