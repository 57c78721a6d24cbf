#include "cli/submission/job_script.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/submission/sbatch_line.h"
#include "cli/text/json_view.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {
namespace {

using Words = std::vector<std::string>;

// A submission from a folder of the test's own, with the files of this machine.
class Scripts : public Cli {
 protected:
  Scripts() {
    char name[] = "/tmp/gp-scripts-XXXXXX";
    folder_ = ::mkdtemp(name);
    around_.directory = folder_;
    around_.environment = {"PATH=/bin:/usr/bin"};
    around_.path_kind = client::environment_of_process().path_kind;
  }
  ~Scripts() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text, mode_t mode = 0644) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  void give_input(const std::string& text) {
    const int fd = ::memfd_create("in", MFD_CLOEXEC);
    EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::lseek(fd, 0, SEEK_SET);
    around_.in_fd = fd;
  }
  int submit(Words words) {
    words.insert(words.begin(), "submit");
    return call(server_, words);
  }

  std::string folder_;
  Json sent_;
  FakeServer server_{[this](const FakeServer::Request& request) {
    sent_ = Json::parse(request.body);
    return json_answer(kJob, 201);
  }};
};

constexpr const char* kTraining =
    "#!/bin/bash -e\n"
    "#GPU --gpus 2 --time 4h   # two of them\n"
    "# a comment\n"
    "\n"
    "#GPU --label run=7 --env 'NAME=a b'\n"
    "python3 train.py \"$@\"\n"
    "#GPU --gpus 8\n";

TEST_F(Scripts, AreCopiedWithTheOptionsOfTheirFirstLines) {
  write("job.sh", kTraining);
  EXPECT_EQ(submit({"job.sh", "a", "--gpus", "3"}), 0) << err();
  EXPECT_EQ(sent_["command"],
            Json::array({"/bin/bash", "-e", "-c", kTraining, "job.sh", "a", "--gpus", "3"}));
  EXPECT_EQ(sent_["gpus"], 2);
  EXPECT_EQ(sent_["time_limit_seconds"], 14400);
  EXPECT_EQ(sent_["labels"]["run"], "7");
  EXPECT_EQ(sent_["environment"]["NAME"], "a b");
  EXPECT_EQ(sent_["name"], "job.sh");
  EXPECT_EQ(err(), "");
}

TEST_F(Scripts, GiveWayToTheCommandLine) {
  write("job.sh", kTraining);
  EXPECT_EQ(submit({"--gpus-per-node", "1", "--label", "run=8", "--name", "x", "--", "./job.sh"}),
            0)
      << err();
  EXPECT_EQ(sent_["gpus"], 1);
  EXPECT_EQ(sent_["labels"]["run"], "8");
  EXPECT_EQ(sent_["time_limit_seconds"], 14400);
  EXPECT_EQ(sent_["name"], "x");
  EXPECT_EQ(submit({"--gpu-time", "1h", "--", "./job.sh"}), 0) << err();
  EXPECT_EQ(sent_["time_limit_seconds"], 3600) << "--time of the script is another way to say it";
}

TEST_F(Scripts, NameTheLineOfAMistake) {
  write("job.sh", "#!/bin/sh\n\n#GPU --gpu 2\n");
  EXPECT_EQ(submit({"job.sh"}), 2);
  EXPECT_TRUE(has(err(), "error: job.sh: line 3: unknown option '--gpu'")) << err();
  write("job.sh", "#!/bin/sh\n#GPU --time soon\n");
  EXPECT_EQ(submit({"job.sh"}), 2);
  EXPECT_TRUE(has(err(), "job.sh: line 2: --time: 'soon' is not a duration")) << err();
  write("job.sh", "#!/bin/sh\n#GPU --name 'x\n");
  EXPECT_EQ(submit({"job.sh"}), 2);
  EXPECT_TRUE(has(err(), "job.sh: line 2: a quote ' is not closed")) << err();
  write("job.sh", "#!/bin/sh\n#SBATCH --ntasks-per-core=2\n");
  EXPECT_EQ(submit({"job.sh"}), 2);
  EXPECT_TRUE(has(err(), "job.sh: line 2: --ntasks-per-core: 'submit' has no counterpart"))
      << err();
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(Scripts, OfSlurmAreTranslated) {
  write("job.sh",
        "#!/bin/bash\n"
        "#SBATCH --job-name=night -N1 --gres=gpu:a100:2\n"
        "#SBATCH -t 30:30\n"
        "#SBATCH -p gpu --mem=8G --mail-user=ada\n");
  EXPECT_EQ(submit({"job.sh"}), 0) << err();
  EXPECT_EQ(sent_["name"], "night");
  EXPECT_EQ(sent_["gpus"], 2);
  EXPECT_EQ(sent_["gpu_types"], Json::array({"a100"}));
  EXPECT_EQ(sent_["time_limit_seconds"], 1830);
  EXPECT_EQ(sent_["memory_bytes"], std::int64_t{8} << 30);
  EXPECT_TRUE(has(err(), "warning: job.sh: line 4: --partition is ignored")) << err();
  EXPECT_TRUE(has(err(), "--mail-user is ignored: --mail-type names no event")) << err();
}

TEST_F(Scripts, ComeFromStandardInput) {
  give_input("#!/usr/bin/env bash\n#GPU --gpus 1\ndate\n");
  EXPECT_EQ(submit({"-", "x"}), 0) << err();
  EXPECT_EQ(sent_["command"],
            Json::array({"/usr/bin/env", "bash", "-c", "#!/usr/bin/env bash\n#GPU --gpus 1\ndate\n",
                         "script", "x"}));
  EXPECT_EQ(sent_["gpus"], 1);
  ::close(around_.in_fd);
  give_input("date\n");
  EXPECT_EQ(submit({"-"}), 2);
  EXPECT_TRUE(has(err(), "standard input: it does not begin with an interpreter")) << err();
  ::close(around_.in_fd);
}

TEST_F(Scripts, OfOtherInterpretersAreRunWhereTheyLie) {
  write("train.py", "#!/usr/bin/env python3\n#GPU --gpus 4\n", 0755);
  EXPECT_EQ(submit({"./train.py", "x"}), 0) << err();
  EXPECT_EQ(sent_["command"], Json::array({"./train.py", "x"}));
  EXPECT_EQ(sent_["gpus"], 4);
}

TEST_F(Scripts, WithAnAbsolutePathAreProgramsUnlessTheyHaveOptions) {
  const std::string plain = write("plain.sh", "#!/bin/sh\ndate\n", 0755);
  EXPECT_EQ(submit({"--gpus", "1", "--", plain}), 0) << err();
  EXPECT_EQ(sent_["command"], Json::array({plain}));
  const std::string text = "#!/bin/sh\n#GPU --gpus 3\n";
  const std::string script = write("job.sh", text);
  EXPECT_EQ(submit({script}), 0) << err();
  EXPECT_EQ(sent_["command"], Json::array({"/bin/sh", "-c", text, script}));
}

TEST_F(Scripts, InAnImageAreReadByItsShell) {
  const std::string text = "#!/bin/sh\ndate\n";
  write("job.sh", text);
  EXPECT_EQ(submit({"--gpus", "1", "--image", "x", "job.sh", "a"}), 0) << err();
  EXPECT_EQ(sent_["entrypoint"], "/bin/sh");
  EXPECT_EQ(sent_["command"], Json::array({"-c", text, "job.sh", "a"}));
}

TEST_F(Scripts, AreRefusedIfTheyAreTooLargeOrFromDos) {
  write("large.sh", "#!/bin/sh\n" + std::string(100'000, '#'));
  EXPECT_EQ(submit({"large.sh"}), 2);
  EXPECT_TRUE(has(err(), "large.sh: it has more than 96 KiB")) << err();
  write("dos.sh", "#!/bin/sh\r\ndate\r\n");
  EXPECT_EQ(submit({"dos.sh"}), 2);
  EXPECT_TRUE(has(err(), "dos2unix")) << err();
}

TEST(ScriptText, IsLeftOutOfWhatAPersonReads) {
  EXPECT_EQ(without_script_text({"/bin/sh", "-c", "#!/bin/sh\ndate\n", "job.sh", "a"}),
            (Words{"job.sh", "a"}));
  EXPECT_EQ(without_script_text({"sh", "-c", "date"}), (Words{"sh", "-c", "date"}));
}

TEST(SbatchLine, GivesTheWordsOfTheCommandLine) {
  Words warnings;
  SbatchMail mail;
  EXPECT_EQ(
      *words_of_sbatch_line({"-N", "2-4", "--gpus=4", "-t", "1-00", "-H", "--mem", "0"}, mail,
                            warnings),
      (Words{"--nodes", "2", "--first-node-only", "--gpus", "4", "--time", "1-00", "--hold"}));
  EXPECT_EQ(warnings.size(), 1U);
  EXPECT_EQ(*words_of_sbatch_line({"--gres", "gpu:h100,lustre:1"}, mail, warnings),
            (Words{"--gpu-type", "h100", "--gpus-per-node", "1"}));
  EXPECT_FALSE(words_of_sbatch_line({"--exclusive"}, mail, warnings));
  EXPECT_FALSE(words_of_sbatch_line({"--time"}, mail, warnings));
  EXPECT_FALSE(words_of_sbatch_line({"date"}, mail, warnings));
}

TEST(SbatchLine, MailOfSeveralLinesAddsUp) {
  using Events = std::set<std::string>;
  Words warnings;
  SbatchMail mail;
  EXPECT_EQ(
      *words_of_sbatch_line({"--mail-type=BEGIN,none", "--mail-user", "ada@x.org"}, mail, warnings),
      Words());
  EXPECT_EQ(mail.events, Events{"start"});
  EXPECT_EQ(mail.to, "ada@x.org");
  EXPECT_TRUE(words_of_sbatch_line({"--mail-type=time_limit,REQUEUE"}, mail, warnings));
  EXPECT_EQ(mail.events, (Events{"start", "fail"}));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(has(warnings.front(), "--mail-type: 'REQUEUE' is ignored")) << warnings.front();
  SbatchMail all;
  EXPECT_TRUE(words_of_sbatch_line({"--mail-type=ALL"}, all, warnings));
  EXPECT_EQ(all.events, (Events{"start", "end", "fail"}));
}

// The mail of scripts, at a site with or without a notification command.
class MailOfScripts : public Scripts {
 protected:
  int submit_to(bool can_notify, Words words) {
    FakeServer server([&](const FakeServer::Request& request) {
      if (request.target == "/v1/slurm") {
        return json_answer(Json{{"can_notify", can_notify}}.dump());
      }
      sent_ = Json::parse(request.body);
      return json_answer(kJob, 201);
    });
    words.insert(words.begin(), "submit");
    return call(server, words);
  }
  void write_script() {
    write("job.sh",
          "#!/bin/sh\n#SBATCH --mail-type=END\n#SBATCH --mail-user=ada@x.org\n"
          "#SBATCH --mail-type=FAIL\ndate\n");
  }
};

TEST_F(MailOfScripts, IsThatOfNotify) {
  write_script();
  EXPECT_EQ(submit_to(true, {"--gpus", "0", "job.sh"}), 0) << err();
  EXPECT_EQ(sent_["notify"], Json::array({"END", "FAIL"}));
  EXPECT_EQ(sent_["notify_to"], "ada@x.org");
  EXPECT_EQ(err(), "");
}

TEST_F(MailOfScripts, GivesWayToTheCommandLine) {
  write_script();
  EXPECT_EQ(submit_to(true, {"--notify", "start", "--", "job.sh"}), 0) << err();
  EXPECT_EQ(sent_["notify"], Json::array({"START"}));
  EXPECT_EQ(sent_["notify_to"], "ada@x.org");
}

TEST_F(MailOfScripts, IsLeftOutWhereTheSiteHasNoCommand) {
  write_script();
  EXPECT_EQ(submit_to(false, {"job.sh"}), 0) << err();
  EXPECT_FALSE(sent_.contains("notify")) << sent_.dump();
  EXPECT_FALSE(sent_.contains("notify_to")) << sent_.dump();
  EXPECT_TRUE(has(err(), "warning: job.sh: --mail-type is ignored: no mail is sent")) << err();
}

// ---- what is looked at before the daemon hears of it

TEST_F(Scripts, HintAtThePathOfAProgramInThisFolder) {
  write("tool", "x", 0755);
  EXPECT_EQ(submit({"--gpus", "1", "--", "tool", "a b"}), 2);
  EXPECT_TRUE(has(err(),
                  "no program 'tool' in PATH, but a file of this name is here: write "
                  "./tool 'a b'"))
      << err();
  write("train.py", "print()");
  EXPECT_EQ(submit({"--gpus", "1", "--", "train.py"}), 2);
  EXPECT_TRUE(has(err(), "write python3 train.py")) << err();
  EXPECT_EQ(submit({"--gpus", "1", "--", "./train.py"}), 2);
  EXPECT_TRUE(has(err(), "'./train.py' is not executable: write python3 ./train.py")) << err();
  EXPECT_EQ(submit({"--gpus", "1", "--", "no-such-tool"}), 2);
  EXPECT_TRUE(has(err(), "there is no program 'no-such-tool' in PATH")) << err();
  EXPECT_EQ(submit({"--gpus", "1", "--no-check", "--", "no-such-tool"}), 0) << err();
}

TEST_F(Scripts, HintAtTheShellOfALineInOneWord) {
  EXPECT_EQ(submit({"--gpus", "1", "--", "echo a | wc"}), 2);
  EXPECT_TRUE(has(err(), "use -- sh -c 'echo a | wc'")) << err();
}

TEST_F(Scripts, LookAtTheFoldersOfTheJob) {
  EXPECT_EQ(submit({"--gpus", "1", "--workdir", "/nope", "--", "true"}), 2);
  EXPECT_TRUE(has(err(), "--workdir: '/nope' does not exist")) << err();
  EXPECT_EQ(submit({"--gpus", "1", "--output", "logs/%j.log", "--", "true"}), 2);
  EXPECT_TRUE(has(err(), "--output: the folder 'logs' does not exist: make it with mkdir -p"))
      << err();
  EXPECT_EQ(submit({"--gpus", "1", "--output", "%x/%j.log", "--", "true"}), 0) << err();
  EXPECT_EQ(submit({"--gpus", "1", "--image", "x", "--workdir", "/nope", "--", "y"}), 0) << err();
}

TEST_F(Scripts, HaveVariablesFromAFile) {
  write("env",
        "# for the cluster\n"
        "A=1\n"
        "export B = \"two\\nlines\"  # quoted\n"
        "C='$x'\n"
        "\n"
        "D=\n");
  EXPECT_EQ(submit({"--gpus", "1", "--env-file", "env", "--env", "A=2", "--", "true"}), 0) << err();
  EXPECT_EQ(sent_["environment"]["A"], "2");
  EXPECT_EQ(sent_["environment"]["B"], "two\nlines");
  EXPECT_EQ(sent_["environment"]["C"], "$x");
  EXPECT_EQ(sent_["environment"]["D"], "");
  write("env", "A=1\nhunter2\n");
  EXPECT_EQ(submit({"--gpus", "1", "--env-file", "env", "--", "true"}), 2);
  EXPECT_TRUE(has(err(), "--env-file: 'env': line 2: it is not of the form NAME=VALUE")) << err();
  EXPECT_FALSE(has(err(), "hunter2")) << err();
}

}  // namespace
}  // namespace gpu_platform::cli
