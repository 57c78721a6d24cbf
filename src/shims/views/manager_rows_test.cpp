#include "shims/views/manager_rows.h"

#include <gtest/gtest.h>

namespace gpu_platform::shims {
namespace {

std::string shown(const std::vector<ManagedRow>& rows, std::string_view format) {
  return managed_table(*chosen_columns(format), rows, {false, "|"});
}

AccountShare share_of(const std::string& team, const std::string& user, std::uint32_t shares,
                      const std::string& parent = {}) {
  AccountShare row;
  row.share.set_team(team);
  row.share.set_user(user);
  row.share.set_shares(shares);
  row.share.set_parent(parent);
  return row;
}

ManagedSite site_with_teams() {
  ManagedSite site;
  site.site = usual_site();
  site.shares = {share_of("", "", 0),           share_of("science", "", 2),
                 share_of("science", "ada", 1), share_of("physics", "", 1, "science"),
                 share_of("physics", "ada", 1), share_of("", "bob", 1)};
  site.shares[2].grp_jobs = "5";
  site.shares[3].grp_tres = "gres/gpu=16";
  return site;
}

TEST(ManagerRows, AssociationsAreTheTeamsAndTheirUsers) {
  EXPECT_EQ(shown(association_rows(site_with_teams()),
                  "account,user,share,id,parentid,parentname,lineage,grpjobs,grptres"),
            "root||1|1|0||/||\n"
            "root|root|1|2|1||/0-root/||\n"
            "science||2|3|1|root|/science/||\n"
            "science|ada|1|4|3||/science/0-ada/|5|\n"
            "physics||1|5|3|science|/science/physics/||gres/gpu=16\n"
            "physics|ada|1|6|5||/science/physics/0-ada/||\n");
}

TEST(ManagerRows, AccountsAndUsersAreListedOnce) {
  EXPECT_EQ(shown(account_rows(site_with_teams()), "account,descr,org"),
            "physics|physics|science\nroot|default root account|root\nscience|science|science\n");
  EXPECT_EQ(shown(user_rows(site_with_teams()), "user,defaulta,admin"),
            "ada|science|None\nroot|root|Administrator\n");
}

TEST(ManagerRows, ASiteThatHasWrittenNoneHasWhatSlurmBeginsWith) {
  ManagedSite site;
  site.site = usual_site();
  site.shares = {share_of("", "", 0), share_of("", "bob", 0)};
  EXPECT_EQ(shown(association_rows(site), "cluster,account,user"),
            "gpu-platform|root|\ngpu-platform|root|root\n");
  EXPECT_EQ(shown(account_rows(site), "account,descr,org"), "root|default root account|root\n");
  EXPECT_EQ(shown(user_rows(site), "user"), "root\n");
}

TEST(ManagerRows, QosHaveTheLimitsOfTheSite) {
  EXPECT_EQ(shown({qos_rows(usual_site()).front()},
                  "name,desc,prio,gracetime,preemptmode,usagef,flags,maxtres,maxwall"),
            "normal|Normal QOS default|1000|00:00:00|cluster|1.000000|||\n");
  Site site = usual_site();
  site.qos = {{"urgent", "HIGH", base::hours(4), 8}};
  EXPECT_EQ(shown(qos_rows(site), "name,id,prio,flags,maxtresperjob,maxwall,maxtrespu"),
            "urgent|1|2000|DenyOnLimit|gres/gpu=8|04:00:00|\n");
  EXPECT_EQ(shown({association_rows({{}, site, {}}).front()}, "qos,qosraw,defaultqos"),
            "urgent|1|\n");
}

TEST(ManagerRows, TheClusterHasItsNodes) {
  ManagedSite site = site_with_teams();
  NodeView node;
  node.cpus = 8;
  node.memory_mib = 2048;
  node.gpus = {{"H100", 2, {}}};
  for (const char* name : {"n2", "n1"}) {
    node.name = name;
    site.nodes.push_back(node);
  }
  EXPECT_EQ(shown(cluster_rows(site), "cluster,clusternodes,nodecount,tres,fedstate,qos"),
            "gpu-platform|n[1-2]|2|billing=16,cpu=16,energy=0,fs/disk=0,gres/gpu=4,mem=4G,node=2,"
            "pages=0,vmem=0|NA|normal,low,medium,high,critical\n");
}

TEST(ManagerRows, EventsAreTheNodesThatAreAway) {
  NodeView idle;
  idle.name = "n1";
  idle.base_state = "idle";
  NodeView drained = idle;
  drained.name = "n2";
  drained.is_draining = true;
  drained.reason = "fans";
  drained.reason_user = "root";
  drained.reason_at = base::Instant(1'000'000'000);
  EXPECT_EQ(shown(event_rows({idle, drained}, base::Instant(61'000'000'000)),
                  "nodename,event,state,reason,user,duration,timeend"),
            "n2|Node|DRAIN|fans|root(0)|00:01:00|Unknown\n");
}

TEST(ManagerRows, JoinWhatIsTold) {
  const std::vector<ManagedRow> joined = joined_rows({{{"Account", "a"}, {"User", "u"}}},
                                                     {{{"Account", "a"}, {"Org", "o"}}}, "Account");
  EXPECT_EQ(shown(joined, "account,user,org"), "a|u|o\n");
}

}  // namespace
}  // namespace gpu_platform::shims
