#include <sstream>

#include <nlohmann/json.hpp>

#include "shims_fixture.h"

// What Slurm's commands show of jobs, nodes and the site, and what they change in it.

namespace gpu_platform::e2e {
namespace {

class Queries : public SlurmCommands {
 protected:
  Queries() : SlurmCommands({.emulate = "2xdgx-h100,l40s-x8"}) {}

  // Whether a record of scontrol has all of the KEY=VALUE words.
  void expect_words(const std::string& page, const std::vector<std::string>& words) const {
    for (const std::string& word : words)
      EXPECT_NE((" " + page).find(" " + word), std::string::npos) << word << "\n" << page;
  }
};

TEST_F(Queries, SinfoGivesUnlikeNodesTheirOwnLines) {
  EXPECT_EQ(out({"sinfo", "-h", "-o", "%N|%G"}),
            "dgx-h100-[1-2]|gpu:H100-80GB:8\nl40s-x8-1|gpu:L40S-48GB:8\n");
  EXPECT_EQ(out({"sinfo", "-h", "-o", "%D %c"}), "3 128+\n");
  EXPECT_EQ(out({"sinfo", "-h", "-e", "-o", "%D %c"}), "2 224\n1 128\n");
  EXPECT_EQ(out({"sinfo", "-h", "-N", "-o", "%N"}), "dgx-h100-1\ndgx-h100-2\nl40s-x8-1\n");
  EXPECT_EQ(out({"sinfo", "-h", "-O", "NodeList:.12|,GresUsed:", "-n", "dgx-h100-2"}),
            "  dgx-h100-2|gpu:H100-80GB:0(IDX:N/A)\n");
  EXPECT_EQ(out({"sinfo", "-h", "-o", "%f", "-n", "l40s-x8-1"}), "gpu,l40s,L40S-48GB\n");
}

TEST_F(Queries, CpusMemoryAndTasksAreThoseOfTheRequestAlsoWhileTheJobWaits) {
  const auto asked = [&](std::vector<std::string> options) {
    options.insert(options.begin(), "-N2");
    options.push_back("--wrap=sleep 600");
    return sbatch(std::move(options));
  };
  const std::vector<std::string> by_node = {"--ntasks-per-node=2", "-c3", "--mem=1G"};
  std::vector<std::string> held = by_node;
  held.emplace_back("-H");
  const std::string runs = asked(by_node);
  ASSERT_TRUE(reaches(runs, "RUNNING"));
  for (const std::string& id : {asked(held), runs}) {
    expect_words(out({"scontrol", "-o", "show", "job", id}),
                 {"NumCPUs=12 NumTasks=4 CPUs/Task=3 ", "MinCPUsNode=6 MinMemoryNode=1G "});
    EXPECT_EQ(out({"squeue", "-h", "-j", id + "," + id, "-o", "%C %c %m"}), "12 6 1G\n");
    EXPECT_EQ(out({"squeue", "-h", "-j", id, "-O", "NumTasks:3,cpus-per-task:2"}), "4  3 \n");
  }
  expect_words(out({"scontrol", "-o", "show", "job", asked({"-H", "-n4", "--mem-per-cpu=512"})}),
               {"NumCPUs=4 NumTasks=4 CPUs/Task=1 ", "MinMemoryCPU=512M "});
}

TEST_F(Queries, SinfoKnowsEveryLetter) {
  for (const char letter : std::string("aAbBcCdDeEfFgGhHIlLmMnNoOpPrRsStTuUvVwXYZz")) {
    const std::string header = out({"sinfo", "-o", std::string("%") + letter});
    EXPECT_FALSE(lines_of(header)[0].empty()) << letter;
  }
  EXPECT_NE(refusal({"sinfo", "-o", "%k"}).find("%k"), std::string::npos);
  EXPECT_NE(refusal({"sinfo", "-t", "sleepy"}).find("sleepy"), std::string::npos);
}

TEST_F(Queries, AllColumnsAreShownWhereAsked) {
  const auto nodes = lines_of(out({"sinfo", "-o", "%all"}));
  ASSERT_EQ(nodes.size(), 4U);  // a title, and the nodes one by one: their names are shown
  EXPECT_TRUE(nodes[0].starts_with("AVAIL|ACTIVE_FEATURES|CPUS|")) << nodes[0];
  EXPECT_NE(nodes[1].find("|gpu:H100-80GB:8|"), std::string::npos) << nodes[1];
  sbatch({"-J", "all-of-it", "--wrap=true", "-H"});
  const auto jobs = lines_of(out({"squeue", "-o", "%all"}));
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_TRUE(jobs[0].starts_with("ACCOUNT|TRES_PER_NODE|MIN_CPUS|")) << jobs[0];
  EXPECT_NE(jobs[1].find("|all-of-it|"), std::string::npos) << jobs[1];
}

// Ended once it has shown the table three times, by the pipe that head closes.
TEST_F(Queries, TablesAreShownAgainAndAgain) {
  for (const std::string command : {"squeue", "sinfo"}) {
    const std::string shown = out({"sh", "-c", command + " -h -i 1 | head -n 5 | wc -l"});
    EXPECT_EQ(shown, "5\n");
    EXPECT_NE(refusal({command, "-i", "often"}).find("--iterate"), std::string::npos);
  }
}

TEST_F(Queries, StatesOfNodesAreSlurms) {
  const std::string some = sbatch({"--gpus=2", "-w", "dgx-h100-1", "--wrap=sleep 600"});
  const std::string all = sbatch({"--gpus=8", "-w", "dgx-h100-2", "--wrap=sleep 600"});
  ASSERT_TRUE(reaches(some, "RUNNING"));
  ASSERT_TRUE(reaches(all, "RUNNING"));
  EXPECT_EQ(out({"sinfo", "-h", "-o", "%N %t %T"}),
            "dgx-h100-1 mix mixed\ndgx-h100-2 alloc allocated\nl40s-x8-1 idle idle\n");
  EXPECT_EQ(out({"sinfo", "-h", "-t", "idle", "-o", "%N"}), "l40s-x8-1\n");
  EXPECT_EQ(out({"sinfo", "-h", "-O", "GresUsed:40", "-n", "dgx-h100-1"}).substr(0, 26),
            "gpu:H100-80GB:2(IDX:0-1)  ");
  out({"scontrol", "update", "NodeName=dgx-h100-1,l40s-x8-1", "State=DRAIN", "Reason=fans"});
  EXPECT_EQ(out({"sinfo", "-h", "-t", "drain", "-o", "%N %t %E"}),
            "dgx-h100-1 drng fans\nl40s-x8-1 drain fans\n");
  expect_words(out({"scontrol", "-o", "show", "node", "dgx-h100-1"}),
               {"State=MIXED+DRAIN", "Reason=fans", "GresUsed=gpu:H100-80GB:2(IDX:0-1)",
                "ActiveFeatures=gpu,h100,H100-80GB", "AllocTRES=cpu="});
  EXPECT_EQ(lines_of(out({"sinfo", "-R"})).size(), 2U);
  out({"scontrol", "update", "NodeName=ALL", "State=RESUME"});
  EXPECT_EQ(out({"sinfo", "-h", "-t", "drain", "-N"}), "");
}

TEST_F(Queries, DocumentsHaveTheFormOfSlurm24AndOlderOnesByName) {
  const std::string id = sbatch({"--gres=gpu:2", "-w", "dgx-h100-1", "--wrap=sleep 600"});
  ASSERT_TRUE(reaches(id, "RUNNING"));
  const auto document = [&](std::vector<std::string> words) {
    return nlohmann::json::parse(out(words));
  };
  const auto info = document({"sinfo", "--json"});
  EXPECT_EQ(info["sinfo"].size(), 3U);
  EXPECT_EQ(info["sinfo"][0]["gres"]["total"], "gpu:H100-80GB:8");
  EXPECT_EQ(info["meta"]["slurm"]["release"], "24.11.5");
  EXPECT_EQ(document({"sinfo", "--json", "-n", "l40s-x8-1"})["sinfo"].size(), 1U);
  const auto job = document({"squeue", "--json"})["jobs"][0];
  EXPECT_EQ(job["job_state"], nlohmann::json::array({"RUNNING"}));
  EXPECT_EQ(job["node_count"]["number"], 1);
  EXPECT_EQ(job["tres_per_node"], "gres/gpu:2");
  EXPECT_EQ(job["gres_detail"], nlohmann::json::array({"gpu:H100-80GB:2(IDX:0-1)"}));
  EXPECT_EQ(document({"scontrol", "show", "job", id, "--json"})["jobs"][0]["job_id"], 1);
  EXPECT_EQ(document({"scontrol", "--json", "show", "node"})["nodes"][0]["cpu_load"], 0);
  EXPECT_EQ(document({"scontrol", "--json", "show", "partition"})["partitions"][0]["name"], "gpu");
  EXPECT_EQ(document({"squeue", "--json=v0.0.38"})["jobs"][0]["job_state"], "RUNNING");
  EXPECT_EQ(document({"sinfo", "--json=v0.0.38"})["nodes"].size(), 3U);
  EXPECT_EQ(document({"squeue", "--json=v0.0.40"})["meta"]["plugin"]["data_parser"],
            "data_parser/v0.0.40");
  EXPECT_TRUE(out({"squeue", "--yaml"}).starts_with("%YAML 1.1\n--- !!map\n!!str jobs: !!seq\n"));
  EXPECT_NE(out({"sacct", "--json=list"}).find("data_parser/v0.0.42\n"), std::string::npos);
  EXPECT_NE(refusal({"squeue", "--json=v9"}).find("data_parser/v9"), std::string::npos);
  EXPECT_TRUE(out({"sinfo", "-V"}).starts_with("slurm 24.11.5 "));
}

TEST_F(Queries, DetailsOfAJobAreItsGpus) {
  const std::string id = sbatch({"--gpus=2", "-w", "dgx-h100-1", "-c4", "--wrap=sleep 600"});
  ASSERT_TRUE(reaches(id, "RUNNING"));
  const std::string page = out({"scontrol", "show", "job", "-d", id});
  EXPECT_NE(page.find("\n   JOB_GRES=gpu:H100-80GB:2\n     Nodes=dgx-h100-1 CPU_IDs=0-3 Mem="),
            std::string::npos)
      << page;
  EXPECT_NE(page.find(" GRES=gpu:H100-80GB:2(IDX:0-1)\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\n   DerivedExitCode=0:0\n"), std::string::npos) << page;
  EXPECT_EQ(out({"scontrol", "show", "job", id}).find("JOB_GRES"), std::string::npos);
}

TEST_F(Queries, SqueueJoinsWaitingMembersOfAnArray) {
  const std::string id = sbatch({"-a", "1-6%1", "--gpus=8", "--wrap=sleep 600"});
  ASSERT_TRUE(eventually([&] { return out({"squeue", "-h", "-t", "R", "-o", "%i"}) == "1_1\n"; }));
  EXPECT_EQ(out({"squeue", "-h", "-o", "%i %K"}), "1_[2-6%1] 2-6%1\n1_1 1\n");
  EXPECT_EQ(lines_of(out({"squeue", "-h", "-r"})).size(), 6U);
  EXPECT_EQ(out({"squeue", "-h", "-j", "1_3", "-o", "%i"}), "1_3\n");
  const std::string page = out({"scontrol", "show", "job", id});
  expect_words(page, {"ArrayTaskId=1", "ArrayTaskId=2-6%1", "ArrayTaskThrottle=1"});
  EXPECT_EQ(lines_of(out({"scontrol", "-o", "show", "job", id})).size(), 2U);
}

TEST_F(Queries, SqueueSortsFiltersAndShowsGangs) {
  const std::string gang = daemon.submit({"--gpus", "16", "--nodes", "2", "--", "sleep", "600"});
  ASSERT_TRUE(reaches(gang, "RUNNING"));
  EXPECT_EQ(out({"squeue", "-h", "-o", "%D %N"}), "2 dgx-h100-[1-2]\n");
  const std::string low = sbatch({"--nice=10", "--gpus=8", "-C", "h100", "--wrap=true"});
  const std::string after = sbatch({"-d", "afterok:" + gang, "-J", "after", "--wrap=true"});
  EXPECT_EQ(out({"squeue", "-h", "-t", "PD", "-S", "-i", "-o", "%i"}), after + "\n" + low + "\n");
  EXPECT_EQ(out({"squeue", "-h", "-t", "PD", "-S", "Q", "-o", "%i"}), low + "\n" + after + "\n");
  EXPECT_EQ(out({"squeue", "-h", "-n", "after", "-o", "%E"}),
            "afterok:" + gang + "(unfulfilled)\n");
  EXPECT_EQ(out({"squeue", "-h", "-w", "dgx-h100-2", "-o", "%i"}), gang + "\n");
  EXPECT_NE(refusal({"squeue", "-u", "no_such_user"}).find("Invalid user"), std::string::npos);
  EXPECT_NE(refusal({"squeue", "-j", "abc"}).find("Invalid job id"), std::string::npos);
  EXPECT_NE(refusal({"squeue", "-S", "!"}).find("--sort"), std::string::npos);
}

TEST_F(Queries, ScontrolChangesWhatAJobAsksFor) {
  const std::string id = sbatch({"-H", "--gpus=1", "-t60", "--wrap=true"});
  out({"scontrol", "update", "JobId=" + id, "NumCPUs=3", "MinMemoryNode=2G", "Gres=gpu:l40s:2",
       "ExcNodeList=dgx-h100-1", "TimeLimit=30"});
  const auto spec = daemon.job(id)["spec"];
  EXPECT_EQ(spec["cpus"], 3);
  EXPECT_EQ(spec["gpus"], 2);
  EXPECT_EQ(spec["memory_bytes"], std::int64_t{2} << 30);
  EXPECT_EQ(spec["time_limit_seconds"], 1800);
  EXPECT_EQ(spec["exclude"][0], "dgx-h100-1");
  EXPECT_NE(refusal({"scontrol", "update", "JobId=" + id, "ArrayTaskThrottle=2"}).find("--array"),
            std::string::npos);
  EXPECT_NE(refusal({"scontrol", "suspend", id}).find("requeuehold"), std::string::npos);
}

TEST_F(Queries, ScontrolMakesReservations) {
  EXPECT_EQ(out({"scontrol", "show", "reservation"}), "No reservations in the system\n");
  EXPECT_EQ(out({"scontrol", "create", "reservation", "ReservationName=fans", "StartTime=now+1hour",
                 "Duration=60", "Nodes=l40s-x8-1", "Users=root", "Flags=MAINT"}),
            "Reservation created: fans\n");
  expect_words(out({"scontrol", "-o", "show", "res", "fans"}),
               {"ReservationName=fans", "Duration=01:00:00", "Nodes=l40s-x8-1", "State=INACTIVE",
                "Flags=MAINT"});
  EXPECT_EQ(out({"scontrol", "update", "ReservationName=fans", "Duration=90", "Flags=DAILY"}),
            "Reservation updated.\n");
  expect_words(out({"scontrol", "-o", "show", "res", "fans"}),
               {"Duration=01:30:00", "Flags=MAINT,DAILY,SPEC_NODES"});
  const auto begin = daemon.json({"reservations", "describe", "fans"})["begin"];
  out({"scontrol", "update", "ReservationName=fans", "skip"});
  EXPECT_GT(daemon.json({"reservations", "describe", "fans"})["begin"], begin);
  EXPECT_NE(refusal({"scontrol", "update", "ReservationName=zz", "Duration=9"}).find("zz"),
            std::string::npos);
  out({"scontrol", "delete", "ReservationName=fans"});
  EXPECT_NE(refusal({"scontrol", "show", "res", "fans"}).find("not found"), std::string::npos);
  EXPECT_NE(refusal({"scontrol", "create", "reservation", "Duration=x"}).find("Duration"),
            std::string::npos);
}

TEST_F(Queries, ScontrolShowsTheSite) {
  expect_words(out({"scontrol", "-o", "show", "partition"}),
               {"PartitionName=gpu", "Nodes=dgx-h100-[1-2],l40s-x8-1", "TotalNodes=3", "State=UP"});
  EXPECT_EQ(out({"scontrol", "show", "hostlist", "b2,b1,a"}), "b[2,1],a\n");
  EXPECT_NE(out({"scontrol", "ping"}).find("is UP"), std::string::npos);
  EXPECT_NE(out({"scontrol", "show", "config"}).find("ClusterName             = gpu-platform"),
            std::string::npos);
  EXPECT_NE(refusal({"scontrol", "show", "nonsense"}).find("nonsense"), std::string::npos);
  EXPECT_NE(refusal({"scontrol", "show", "job", "99"}).find("Invalid job id"), std::string::npos);
  EXPECT_NE(refusal({"scontrol", "update", "NodeName=zz", "State=DRAIN", "Reason=x"}).find("zz"),
            std::string::npos);
}

TEST_F(Queries, SacctHasEveryColumnOfSlurm) {
  const std::string id = sbatch({"--gpus=1", "--mem=1536M", "-c2", "--wrap=exit 3"});
  ASSERT_TRUE(reaches(id, "FAILED"));
  const std::string help = out({"sacct", "--helpformat"});
  EXPECT_EQ(help.substr(0, 79),
            "Account             AdminComment        AllocCPUS           AllocNodes         ");
  std::istringstream names(help);
  for (std::string name; names >> name;)
    EXPECT_EQ(lines_of(out({"sacct", "-n", "-P", "-X", "-o", name})).size(), 1U) << name;
  EXPECT_EQ(
      out({"sacct", "-P", "-o", "jobid,jobname,state,exitc,reqmem,alloccpus,ntasks", "-j", id}),
      "JobID|JobName|State|ExitCode|ReqMem|AllocCPUS|NTasks\n"
      "1|wrap|FAILED|3:0|1.50G|2|\n1.batch|batch|FAILED|3:0||2|1\n");
  EXPECT_EQ(out({"sacct", "-X", "-j", id}),
            "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n"
            "------------ ---------- ---------- ---------- ---------- ---------- -------- \n"
            "1                  wrap        gpu                     2     FAILED      3:0 \n");
  EXPECT_EQ(out({"sacct", "-n", "-p", "-X", "-o", "jobid,state"}), "1|FAILED|\n");
  EXPECT_EQ(out({"sacct", "-n", "-X", "-o", "state%4"}), "FAI+ \n");
  EXPECT_EQ(out({"sacct", "-n", "-P", "-X", "--units=G", "-o", "reqmem"}), "1.50G\n");
  EXPECT_EQ(out({"sacct", "-n", "-P", "-X", "--noconvert", "-o", "reqmem"}), "1536M\n");
  EXPECT_EQ(out({"sacct", "-n", "-P", "-X", "-s", "CD", "-o", "jobid"}), "");
  EXPECT_EQ(nlohmann::json::parse(out({"sacct", "--json"}))["jobs"][0]["state"]["current"][0],
            "FAILED");
  EXPECT_EQ(lines_of(out({"sacct", "-l", "-P"})).size(), 3U);
  EXPECT_NE(refusal({"sacct", "-o", "nope"}).find("Invalid field requested: \"nope\""),
            std::string::npos);
  EXPECT_NE(refusal({"sacct", "--units=X"}).find("--units"), std::string::npos);
  EXPECT_NE(refusal({"sacct", "-S", "soon"}).find("--starttime"), std::string::npos);
}

TEST_F(Queries, ScancelChoosesJobsAsSlurmDoes) {
  const std::string array =
      sbatch({"-a", "1-6", "--gpus=8", "-w", "dgx-h100-1", "--wrap=sleep 600"});
  const std::string there = sbatch({"-w", "l40s-x8-1", "--gpus=1", "--wrap=sleep 600"});
  ASSERT_TRUE(reaches(there, "RUNNING"));
  ASSERT_TRUE(
      eventually([&] { return out({"squeue", "-h", "-t", "R", "-o", "%i"}) != there + "\n"; }));
  const Finished told = call({"scancel", "-v", array + "_[4-5]"});
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_EQ(told.err, "scancel: Terminating job 1_4\nscancel: Terminating job 1_5\n");
  EXPECT_EQ(out({"squeue", "-h", "-t", "PD", "-o", "%i"}), "1_[2-3,6]\n");
  EXPECT_EQ(call({"scancel", "-w", "l40s-x8-1"}).exit_code, 0);
  EXPECT_TRUE(reaches(there, "CANCELLED"));
  EXPECT_EQ(run_command({"/usr/bin/env", "GPU_PLATFORM_SERVER=unix:" + daemon.socket(),
                         program("slurm-shims") + "/scancel", "-i", "1_6"},
                        {}, "n\n")
                .out,
            "Cancel job_id=1_6 name=wrap partition=gpu [y/n]? ");
  EXPECT_EQ(out({"squeue", "-h", "-t", "PD", "-o", "%i"}), "1_[2-3,6]\n");
  EXPECT_NE(refusal({"scancel", "zz"}).find("Invalid job id zz"), std::string::npos);
  EXPECT_NE(refusal({"scancel", "99"}).find("Invalid job id specified"), std::string::npos);
  EXPECT_NE(refusal({"scancel"}).find("No job identification provided"), std::string::npos);
  EXPECT_NE(refusal({"scancel", there + ".0"}).find("name the job"), std::string::npos);
}

TEST_F(Queries, SacctmgrShowsWhatIsNoAccountToo) {
  EXPECT_EQ(out({"sacctmgr", "-n", "-P", "show", "tres", "format=type,name,id"}),
            "cpu||1\nmem||2\nenergy||3\nnode||4\nbilling||5\nfs|disk|6\nvmem||7\npages||8\n"
            "gres|gpu|1001\n");
  EXPECT_EQ(out({"sacctmgr", "-n", "-P", "show", "qos", "format=name"}),
            "normal\nlow\nmedium\nhigh\ncritical\n");
  EXPECT_EQ(out({"sacctmgr", "-n", "-P", "show", "cluster", "format=cluster"}), "gpu-platform\n");
  EXPECT_NE(refusal({"sacctmgr", "add", "user", "x"}).find("teams"), std::string::npos);
}

// What a Slurm has that was just set up, where the site has written nothing.
TEST_F(Queries, SacctmgrShowsEveryEntity) {
  const auto table = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"sacctmgr", "-P", "show"});
    return out(words);
  };
  EXPECT_EQ(table({"account"}), "Account|Descr|Org\nroot|default root account|root\n");
  EXPECT_EQ(table({"assoc", "format=account,user,share"}),
            "Account|User|Share\nroot||1\nroot|root|1\n");
  EXPECT_EQ(table({"user", "withassoc", "format=account"}), "Account\n") << "any name is one";
  EXPECT_EQ(table({"QOS", "where", "name=high", "format=\"Name%20,maxtresperuser,MaxJobsPU\""}),
            "Name|MaxTRESPU|MaxJobsPU\nhigh||\n");
  EXPECT_EQ(table({"cluster", "format=cluster,nodecount,clusternodes"}),
            "Cluster|NodeCount|Cluster Nodes\ngpu-platform|3|dgx-h100-[1-2],l40s-x8-1\n");
  EXPECT_EQ(table({"wckey"}), "WCKey|Cluster|User\n");
  EXPECT_EQ(table({"runaway"}), "Runaway Jobs: No runaway jobs found on cluster gpu-platform\n");
  for (const char* entity : {"event", "federation", "problem", "reservation", "resource",
                             "transaction", "instance", "stats", "config"})
    EXPECT_NE(table({entity}), "") << entity;
  out({"scontrol", "update", "NodeName=l40s-x8-1", "State=DRAIN", "Reason=fans"});
  EXPECT_EQ(table({"event", "format=nodename,state,reason"}),
            "NodeName|State|Reason\nl40s-x8-1|DRAIN|fans\n");
  EXPECT_EQ(refusal({"sacctmgr", "show", "qos", "format=bogus"}), "Unknown field 'bogus'\n");
  EXPECT_TRUE(refusal({"sacctmgr", "show", "coordinator"}).starts_with("No valid entity"));
  EXPECT_TRUE(refusal({"sacctmgr", "show", "qos", "foo=bar"}).starts_with(" Unknown condition"));
}

TEST_F(Queries, SeffAndSprioReportOnJobs) {
  const std::string id = sbatch({"--gpus=1", "--mem=1G", "-c2", "--wrap=true"});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  const std::string page = out({"seff", id});
  EXPECT_TRUE(page.starts_with("Job ID: 1\nCluster: gpu-platform\nUser/Group: ")) << page;
  EXPECT_NE(page.find("State: COMPLETED (exit code 0)\nNodes: 1\nCores per node: 2\n"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("% of 1.00 GB (1.00 GB/node)\n"), std::string::npos) << page;
  EXPECT_EQ(call({"seff", "99"}).exit_code, 2);
  const std::string waiting = sbatch({"--begin=now+1hour", "--wrap=true"});
  EXPECT_EQ(out({"sprio"}),
            "          JOBID PARTITION   PRIORITY       SITE\n"
            "              2 gpu             2500          0\n");
  EXPECT_EQ(out({"sprio", "-h", "-o", "%i %Q %A %F"}), "2 2500 0 0\n") << "no sum";
  EXPECT_NE(refusal({"sprio", "-o", "%X"}).find("%X"), std::string::npos);
}

class WeightedQueue : public SlurmCommands {
 protected:
  WeightedQueue()
      : SlurmCommands({.config =
                           "scheduling: {order: weighted, weights: {age: 1000, priority: 5000, "
                           "fair_share: 300, size: 200}}\n"}) {}
};

TEST_F(WeightedQueue, SprioHasThePartsOfTheSum) {
  const std::string running = sbatch({"-G", "8", "--exclusive", "--wrap=sleep 600"});
  ASSERT_TRUE(reaches(running, "RUNNING"));
  const std::string id = sbatch({"-G", "8", "--exclusive", "--qos=critical", "--wrap=true"});
  EXPECT_EQ(out({"sprio"}),
            "          JOBID PARTITION   PRIORITY       SITE        AGE  FAIRSHARE    JOBSIZE"
            "        QOS\n"
            "              2 gpu             5500          0          0        300        200"
            "       5000\n");
  EXPECT_EQ(out({"sprio", "-h", "-o", "%i %q %f %j"}), "2 1.0000000 1.0000000 1.0000000\n");
  EXPECT_EQ(out({"sprio", "-h", "-w", "-o", "%i %A %F %J %Q"}), "Weights 1000 300 200 5000\n");
  EXPECT_NE(out({"sprio", "-l"}).find("USER"), std::string::npos);
  EXPECT_EQ(out({"sprio", "-h", "-j", "1"}), "");
}

TEST_F(Queries, SdiagTellsWhatTheSchedulerDid) {
  const std::string id = sbatch({"--gpus=2", "--wrap=true"});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  const std::string page = out({"sdiag"});
  const auto number_behind = [&](const std::string& title) {
    const std::size_t found = page.find(title);
    return found == std::string::npos ? -1 : std::stol(page.substr(found + title.size()));
  };
  EXPECT_EQ(number_behind("Jobs submitted:"), 1) << page;
  EXPECT_EQ(number_behind("Jobs started:"), 1);
  EXPECT_EQ(number_behind("Jobs completed:"), 1);
  EXPECT_EQ(number_behind("Jobs running:"), 0);
  EXPECT_GE(number_behind("\tTotal cycles:"), 1);
  EXPECT_GE(number_behind("\tMax cycle:"), number_behind("\tMean cycle:"));
  EXPECT_NE(page.find("JobService.SubmitJob"), std::string::npos);
  EXPECT_NE(refusal({"sdiag", "-r"}).find("--reset"), std::string::npos);
}

TEST_F(Queries, SreportSumsUpWhatWasUsed) {
  const std::string id = sbatch({"--gpus=2", "-c4", "-A", "vision", "--wrap=sleep 1.2"});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  const std::vector<std::string> today = {"start=now-1hours", "end=now+1hours"};
  const auto report = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "sreport");
    words.insert(words.end(), today.begin(), today.end());
    return out(words);
  };
  const auto line = lines_of(report({"-nP", "-t", "Seconds", "-T", "gres/gpu,cpu", "user", "top"}));
  ASSERT_EQ(line.size(), 2U);
  const std::string user = daemon.job(id)["spec"]["user"];
  const std::string account = out({"getent", "passwd", user});
  std::size_t comment = 0;
  for (int field = 0; field < 4; ++field) comment = account.find(':', comment) + 1;
  const std::string full_name =
      account.substr(comment, account.find_first_of(",:", comment) - comment);
  EXPECT_EQ(line[0].substr(0, line[0].rfind('|', line[0].rfind('|') - 1) + 1),
            "gpu-platform|" + user + "|" + full_name + "|vision|gres/gpu|");
  const long gpu_seconds = std::stol(line[0].substr(line[0].find("gres/gpu|") + 9));
  EXPECT_GE(gpu_seconds, 2);
  EXPECT_EQ(
      lines_of(report({"-nP", "cluster", "AccountUtilizationByUser", "accounts=speech"})).size(),
      0U);
  const auto whole =
      lines_of(report({"-P", "-t", "seconds", "-T", "gres/gpu", "cluster", "utilization"}));
  EXPECT_EQ(whole[1].substr(0, 20), "Cluster Utilization ");
  EXPECT_EQ(whole[4], "Cluster|TRES Name|Allocated|Down|PLND Down|Idle|Planned|Reported");
  // 24 GPUs from the daemon's start until now.
  const long reported = std::stol(whole[5].substr(whole[5].rfind('|') + 1));
  EXPECT_GE(reported, 24);
  EXPECT_LT(reported, 24 * 3600) << "the hour before the start is counted";
  EXPECT_NE(refusal({"sreport", "job", "sizes"}).find("sizes"), std::string::npos);
  EXPECT_NE(refusal({"sreport", "user", "top", "-t", "years"}).find("years"), std::string::npos);
}

TEST_F(Queries, SreportTakesOddPeriodsAsSlurmDoes) {
  const auto rows = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"sreport", "-nP", "-T", "cpu,gres/gpu,billing"});
    return lines_of(out(words)).size();
  };
  const std::string id = sbatch({"--gpus=1", "-A", "vision", "--wrap=sleep 0.2"});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  EXPECT_EQ(rows({"user", "top", "start=now", "end=now-1days"}), 0U) << "the hour to come";
  EXPECT_EQ(rows({"user", "top", "start=now+1days", "end=now+2days"}), 0U);
  EXPECT_EQ(rows({"user", "top", "start=1970-01-01", "end=now+1hours"}), 3U);
  EXPECT_EQ(rows({"user", "top", "start=now-1hours", "end=now+1hours", "cluster=elsewhere"}), 0U);
  EXPECT_EQ(rows({"user", "top", "start=now-1hours", "end=now+1hours", "accounts=nowhere"}), 0U);
  EXPECT_EQ(out({"sreport", "-n", "user", "top", "start=now-1hours", "end=now+1hours",
                 "format=Account%9,Account%-4"}),
            "   vision vis+ \n");
}

}  // namespace
}  // namespace gpu_platform::e2e
