#include "api/list_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu_platform/v1/cluster.pb.h"

namespace gpu_platform::api {
namespace {

using EntryNames = std::vector<std::string>;

struct SeenPage {
  EntryNames names;
  std::string next;  // empty: none
};

SeenPage page_of(const EntryNames& all, std::optional<std::uint32_t> limit,
                 const std::string& token) {
  v1::ListNodesRequest request;
  if (limit) request.set_limit(*limit);
  if (!token.empty()) request.set_page_token(token);
  v1::ListNodesResponse answer;
  for (const std::string& name : all) answer.add_nodes()->set_name(name);
  const base::Status cut = cut_to_page(request, *answer.mutable_nodes(), answer,
                                       [](const v1::Node& node) { return node.name(); });
  EXPECT_TRUE(cut.has_value());
  SeenPage page{{}, answer.next_page()};
  for (const v1::Node& node : answer.nodes()) page.names.push_back(node.name());
  return page;
}

TEST(ListPage, EveryEntryIsOnOnePageWhateverTheLimit) {
  const EntryNames all = {"a", "b", "c.d", "e", "f:1"};
  EXPECT_EQ(page_of(all, std::nullopt, "").names, all);
  for (std::uint32_t limit = 1; limit <= 6; ++limit) {
    EntryNames seen;
    std::string token;
    int pages = 0;
    do {
      const SeenPage page = page_of(all, limit, token);
      EXPECT_LE(page.names.size(), limit);
      seen.insert(seen.end(), page.names.begin(), page.names.end());
      token = page.next;
    } while (!token.empty() && ++pages < 10);
    EXPECT_EQ(seen, all) << limit;
  }
}

TEST(ListPage, ChangesBetweenPagesLeaveNoEntryOut) {
  const std::string after_two = page_of({"a", "b", "c", "d"}, 2, "").next;
  EXPECT_EQ(page_of({"0", "a", "b", "c", "d"}, 9, after_two).names, (EntryNames{"c", "d"}));
  EXPECT_EQ(page_of({"b", "c", "d"}, 9, after_two).names, (EntryNames{"c", "d"}));
  EXPECT_EQ(page_of({"a", "c", "d"}, 9, after_two).names, (EntryNames{"c", "d"})) << "b is gone";
  EXPECT_EQ(page_of({}, 9, after_two).names, EntryNames());
}

TEST(ListPage, ATextThatNoPageGaveIsRefused) {
  for (const char* bad : {"", "x", "0.a", "-1.a", ".a", "7", "99999999999.a"}) {
    EXPECT_FALSE(parse_page_token(bad)) << bad;
  }
  EXPECT_EQ(parse_page_token("7.").value().key, "");
  EXPECT_EQ(parse_page_token(to_page_token({3, "a.b"})).value().key, "a.b");
}

}  // namespace
}  // namespace gpu_platform::api
