#include "shims/views/manager_columns.h"

#include <gtest/gtest.h>

namespace gpu_platform::shims {
namespace {

std::string titles(std::string_view format) {
  const auto columns = chosen_columns(format);
  if (!columns) return columns.error().message;
  std::string text;
  for (const ChosenColumn& column : *columns)
    text += (text.empty() ? "" : "|") + std::string(column.title);
  return text;
}

TEST(ManagerColumns, HaveEveryNameOfTheManualPage) {
  EXPECT_EQ(titles("MaxTRESPerUser,MaxTRESPU,MaxJobsPerUser,MaxSubmitJobsPerUser,GrpTRES"),
            "MaxTRESPU|MaxTRESPU|MaxJobsPU|MaxSubmitPU|GrpTRES");
  EXPECT_EQ(titles("MaxTRESPerJob,MaxWallDurationPerJob,Flags,Priority,Preempt,PreemptMode"),
            "MaxTRES|MaxWall|Flags|Priority|Preempt|PreemptMode");
  for (const ManagerColumn& column : manager_columns()) {
    EXPECT_EQ(titles(column.name), column.title);
    EXPECT_EQ(titles(column.name.substr(0, column.least)), column.title) << column.name;
  }
}

TEST(ManagerColumns, AreReadInAnyCaseAndByTheirBeginnings) {
  EXPECT_EQ(titles("name,NAME,na"), "Name|Name|Name");
  EXPECT_EQ(titles("maxtresr,MAXTRESRUNMINSPA,maxtresperj"),
            "MaxTRESRunMinsPU|MaxTRESRunMinsPA|MaxTRES");
  EXPECT_EQ(titles("maxtresp"), "Unknown field 'maxtresp'") << "of several";
  EXPECT_EQ(titles("p,pri,preempt,preemptm,s,st,star"),
            "Problem|Priority|Preempt|PreemptMode|Share|State|TimeStart");
}

TEST(ManagerColumns, ThatAreNoneAreRefusedAsSlurmDoes) {
  EXPECT_EQ(titles(""), "Unknown field ''");
  EXPECT_EQ(titles("name,Nonsense"), "Unknown field 'nonsense'");
  EXPECT_EQ(titles("name, priority"), "Unknown field ' priority'");
  EXPECT_EQ(titles("%20"), "Unknown field '%20'");
}

TEST(ManagerColumns, HaveWidths) {
  const auto columns = chosen_columns("name%-20,priority%5,desc,name%0,name%x,name%99999999");
  ASSERT_TRUE(columns);
  std::vector<int> widths;
  for (const ChosenColumn& column : *columns) widths.push_back(column.width);
  EXPECT_EQ(widths, (std::vector<int>{-20, 5, 20, 10, 10, 4096}));
}

TEST(ManagerTables, LookAsInSlurm) {
  const std::vector<ManagedRow> rows = {{{"Name", "normal"}, {"Priority", "0"}},
                                        {{"Name", "very-long-name"}}};
  const auto columns = chosen_columns("name,priority%5");
  ASSERT_TRUE(columns);
  EXPECT_EQ(managed_table(*columns, rows, {}),
            "      Name Prior \n"
            "---------- ----- \n"
            "    normal     0 \n"
            "very-long+       \n");
  EXPECT_EQ(managed_table(*columns, rows, {true, "|"}),
            "Name|Priority\nnormal|0\nvery-long-name|\n");
  EXPECT_EQ(managed_table(*columns, rows, {false, "|", true}), "normal|0|\nvery-long-name||\n");
}

TEST(ManagerTables, AnUnknownTimeSaysSo) {
  EXPECT_EQ(cell_of({}, "TimeEnd"), "Unknown");
  EXPECT_EQ(cell_of({}, "GrpTRES"), "");
}

}  // namespace
}  // namespace gpu_platform::shims
