#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string_view>
#include <utility>

#include "harness.h"
#include "several_users.h"

// The pages agree with the program: each command of theirs is one, and what they show is what it
// prints.

namespace gpu_platform::e2e {
namespace {

const std::string kSources = GP_SOURCE_DIRECTORY;

struct Block {
  std::string place;  // "docs/users.md:17"
  std::vector<std::string> lines;
};

// The fenced blocks of a page that have no language: what is typed and what is printed.
std::vector<Block> blocks_of(const std::string& page) {
  std::vector<Block> blocks;
  bool is_open = false;
  bool is_ours = false;
  int number = 0;
  for (const std::string& line : lines_of(read_file(kSources + "/" + page))) {
    ++number;
    if (line.starts_with("```")) {
      is_open = !is_open;
      is_ours = is_open && line == "```";
      if (is_ours) blocks.push_back({page + ":" + std::to_string(number), {}});
    } else if (is_ours) {
      blocks.back().lines.push_back(line);
    }
  }
  return blocks;
}

std::vector<std::string> pages() {
  std::vector<std::string> names = {"README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(kSources + "/docs")) {
    if (entry.path().extension() == ".md")
      names.push_back("docs/" + entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

// ---- each command is one

// The command of our program in a line, without the prompt, sudo, comments and what other programs
// do with its output; empty: there is none.
std::string command_in(std::string line) {
  line = std::regex_replace(line, std::regex(R"(^\$ )"), "");
  line = std::regex_replace(line, std::regex(R"(^sudo )"), "");
  if (!line.starts_with("gpu-platform ")) return {};
  static const std::regex kEnd(R"(\s+#| \| | > | >> | < | && | & ?$|; )");
  for (std::sregex_iterator end(line.begin(), line.end(), kEnd); end != std::sregex_iterator();
       ++end) {
    const std::string before = line.substr(0, static_cast<std::size_t>(end->position()));
    if (std::ranges::count(before, '\'') % 2 == 0) return before;  // not within quotes
  }
  return line;
}

// What a page may leave to its reader: "ID…", "[options]" and the like are no words to be typed.
bool is_synopsis(std::string_view command) {
  return command.find("…") != std::string_view::npos || command.find('[') != std::string_view::npos;
}

// They do not ask a daemon first, or read a file that the reader has.
bool is_done_elsewhere(std::string_view command) {
  constexpr std::array<std::string_view, 9> kElsewhere = {
      "serve", "simulate", "store", "doctor", "login", "config", "profile", "estimate", "help"};
  const std::string_view rest = command.substr(std::string_view("gpu-platform ").size());
  return std::ranges::any_of(kElsewhere, [&](std::string_view word) {
    return rest == word || rest.starts_with(std::string(word) + " ");
  });
}

// Whether the words are right, and a terminal, a file or a program of the reader is missing.
bool lacks_the_readers_own(std::string_view told) {
  constexpr std::array<std::string_view, 3> kOwn = {"is not a terminal", "--no-check submits it",
                                                    "No such file or directory"};
  return std::ranges::any_of(
      kOwn, [&](std::string_view text) { return told.find(text) != std::string::npos; });
}

// A command whose words are right finds no daemon, or waits for one; one whose words are wrong is
// told so before.
TEST(Documents, EachCommandOfThePagesIsOne) {
  const TemporaryDirectory folder;
  const std::string programs = std::filesystem::path(program("gpu-platform")).parent_path();
  const std::vector<std::string> environment = {
      "PATH=" + programs + ":/usr/bin:/bin", "HOME=" + folder.path(),
      "GPU_PLATFORM_SERVER=unix:" + folder.path() + "/none", "id=1"};
  std::size_t checked = 0;
  for (const std::string& page : pages()) {
    for (const Block& block : blocks_of(page)) {
      for (const std::string& line : block.lines) {
        const std::string command = command_in(line);
        if (command.empty() || is_synopsis(command) || is_done_elsewhere(command)) continue;
        const Finished done = run_command(
            {"/bin/bash", "-c", "cd " + folder.path() + "; timeout 2 " + command}, environment);
        EXPECT_TRUE(done.exit_code != 2 || lacks_the_readers_own(done.err))
            << block.place << ": " << command << "\n"
            << done.err;
        EXPECT_NE(done.exit_code, 127) << block.place << ": " << command << "\n" << done.err;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 70U);
}

// Those in sentences, in `backticks`: by their first word.
TEST(Documents, EachCommandInASentenceIsOne) {
  static const std::regex kCommand("`gpu-platform ([a-z][a-z-]*)");
  std::map<std::string, std::string> places;  // of each word, one
  for (const std::string& page : pages()) {
    const std::string text = read_file(kSources + "/" + page);
    for (std::sregex_iterator at(text.begin(), text.end(), kCommand); at != std::sregex_iterator();
         ++at) {
      places.emplace((*at)[1], page);
    }
  }
  places.erase("help");
  EXPECT_GT(places.size(), 15U);
  for (const auto& [word, page] : places) {
    const Finished done = run_command({program("gpu-platform"), word, "--help"});
    EXPECT_EQ(done.exit_code, 0) << page << ": gpu-platform " << word << "\n" << done.err;
  }
}

// ---- what they show is what it prints

struct Step {
  std::string command;
  std::vector<std::string> shown;
};

std::vector<Step> steps_of(const Block& block) {
  std::vector<Step> steps;
  for (const std::string& line : block.lines) {
    if (line.starts_with("$ ")) {
      steps.push_back({std::regex_replace(line.substr(2), std::regex(R"(\s+#.*$)"), ""), {}});
    } else if (!steps.empty() && !line.empty()) {
      steps.back().shown.push_back(line);
    }
  }
  return steps;
}

// A line without what differs from run to run: times, durations, users and blanks.
std::string stable(std::string line) {
  static const std::pair<std::regex, const char*> kChanges[] = {
      {std::regex(R"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(Z| [+-]\d{4}))"), "TIME"},
      {std::regex(R"(\d{4}-\d\d-\d\d \d\d:\d\d)"), "TIME"},
      {std::regex(R"(~?\b(\d+[dhms])+\b)"), "DURATION"},
      {std::regex(R"(\b(ann|root|daemon)\b)"), "USER"},
      {std::regex(R"(\s+)"), " "},
      {std::regex(R"(^ | $)"), ""},
  };
  for (const auto& [what, with] : kChanges) line = std::regex_replace(line, what, with);
  return line;
}

class Pages : public testing::Test {
 protected:
  explicit Pages(DaemonOptions options = {}) : daemon(std::move(options)) {}

  void SetUp() override { ASSERT_TRUE(daemon.start()) << daemon.log(); }

  // A job that was just submitted runs, or waits with a reason.
  void settle(const std::string& id) {
    EXPECT_TRUE(eventually([&] {
      const nlohmann::json job = daemon.job(id);
      return job["state"] == "RUNNING" ||
             (job["state"] == "QUEUED" && !job["wait_reason"].is_null());
    })) << id;
  }

  void walk(const Block& block) {
    for (const Step& step : steps_of(block)) {
      if (step.command.starts_with("./dev ") || step.command.find(" serve ") != std::string::npos) {
        continue;  // the harness has built it and started the daemon
      }
      Finished done = run_command({"/bin/bash", "-c", step.command}, environment());
      // A program that runs has not printed yet.
      const bool is_logs = step.command.find(" logs ") != std::string::npos;
      if (is_logs && done.out.empty()) {
        eventually([&] {
          done = run_command({"/bin/bash", "-c", step.command}, environment());
          return !done.out.empty();
        });
      }
      EXPECT_EQ(done.exit_code, 0) << block.place << ": " << step.command << "\n" << done.err;
      if (step.command.find(" submit ") != std::string::npos) settle(lines_of(done.out).front());
      compare(block.place + ": " + step.command, step.shown, lines_of(done.out + done.err));
    }
  }

  // A page may leave out what is printed; what it shows must be there, line by line.
  static void compare(const std::string& place, const std::vector<std::string>& shown,
                      const std::vector<std::string>& printed) {
    if (shown.empty()) return;
    const auto all = [](const std::vector<std::string>& lines) {
      std::string text;
      for (const std::string& line : lines) {
        if (!line.empty()) text += stable(line) + "\n";
      }
      return text;
    };
    EXPECT_EQ(all(printed), all(shown)) << place;
  }

  std::vector<std::string> environment() const {
    const std::string programs = std::filesystem::path(program("gpu-platform")).parent_path();
    return {"PATH=" + programs + ":/usr/bin:/bin", "GPU_PLATFORM_SERVER=unix:" + daemon.socket(),
            "TZ=UTC"};
  }

  Daemon daemon;
};

TEST_F(Pages, TheQuickStartOfTheReadmeRunsAsPrinted) {
  std::size_t walked = 0;
  for (const Block& block : blocks_of("README.md")) {
    if (steps_of(block).empty()) continue;
    walk(block);
    ++walked;
  }
  EXPECT_EQ(walked, 1U);
}

TEST_F(Pages, TheFiveMinutesOfUsersRunAsPrinted) {
  const std::string text = read_file(kSources + "/docs/users.md");
  const std::size_t end = text.find("## Start the daemon");
  ASSERT_NE(end, std::string::npos);
  const auto last = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
  std::size_t walked = 0;
  for (const Block& block : blocks_of("docs/users.md")) {
    if (std::stol(block.place.substr(block.place.rfind(':') + 1)) > last) break;
    if (steps_of(block).empty()) continue;
    walk(block);
    ++walked;
  }
  EXPECT_EQ(walked, 3U);
}

// ---- the pages about readings and alerts

// What is the same whenever a command is run: the titles of tables, the keys of pages, and other
// lines but for their numbers. Rows and graphs are left out.
std::vector<std::string> shape_of(const std::vector<std::string>& lines) {
  static const std::regex kTitles("[A-Z][A-Z0-9 %-]*  [A-Z0-9 %-]*");
  static const std::regex kKey("([A-Z][A-Za-z ]*:)  .*");
  static const std::regex kKeyWithoutColon("([A-Z][A-Za-z]*( [a-z]+)*)  .*");
  static const std::regex kNumber(R"(\d+(\.\d+)?)");
  const auto is_drawn = [](const std::string& line) {
    constexpr std::array<std::string_view, 4> kDrawn = {"│", "▁", "█", "…"};
    return std::ranges::any_of(kDrawn, [&](std::string_view mark) { return line.contains(mark); });
  };
  std::vector<std::string> shape;
  bool is_row = false;
  for (const std::string& line : lines) {
    std::smatch found;
    if (line.empty() || is_drawn(line)) continue;
    if (std::regex_match(line, kTitles)) {
      shape.push_back(stable(line));
      is_row = true;
    } else if (std::regex_match(line, found, kKey)) {
      shape.push_back(found[1]);
      is_row = false;
    } else if (is_row) {
      continue;
    } else if (std::regex_match(line, found, kKeyWithoutColon)) {
      shape.push_back(found[1]);
    } else {
      shape.push_back(std::regex_replace(stable(line), kNumber, "N"));
    }
  }
  return shape;
}

class PagesOfReadings : public Pages {
 protected:
  explicit PagesOfReadings(std::string config =
                               "monitoring: {interval_seconds: 1}\n"
                               "alerts: {rules: [{name: GpuHot, for: 0s}]}\n")
      : Pages({.config = std::move(config)}) {}

  // What a page shows of the key figures is of a site on which more has happened.
  static bool are_alike(const Step& step, const std::vector<std::string>& printed,
                        const std::vector<std::string>& shown) {
    if (!step.command.starts_with("gpu-platform report ")) return printed == shown;
    return !printed.empty() && std::ranges::all_of(printed, [&](const std::string& line) {
      return line.starts_with("Records begin") || std::ranges::find(shown, line) != shown.end();
    });
  }

  // Readings and alerts come after a moment, so a command is run until it has something to show.
  void walk_shapes(const std::string& page, std::size_t steps) {
    std::vector<std::string> surroundings = environment();
    surroundings.emplace_back("LANG=C.UTF-8");
    std::size_t walked = 0;
    for (const Block& block : blocks_of(page)) {
      for (const Step& step : steps_of(block)) {
        const std::vector<std::string> shown = shape_of(step.shown);
        std::vector<std::string> printed;
        EXPECT_TRUE(eventually([&] {
          const Finished done = run_command({"/bin/bash", "-c", step.command}, surroundings);
          printed = shape_of(lines_of(done.out));
          return done.exit_code == 0 && are_alike(step, printed, shown);
        })) << block.place
            << ": " << step.command << "\nprinted: " << testing::PrintToString(printed)
            << "\nshown: " << testing::PrintToString(shown);
        ++walked;
      }
    }
    EXPECT_EQ(walked, steps);
  }
};

TEST_F(PagesOfReadings, MonitoringLooksAsOnItsPage) {
  const std::string id = daemon.submit({"--name", "fine-tune", "--gpus", "2", "--cpus", "4",
                                        "--time", "5m", "--monitor", "--", program("gpu-workload"),
                                        "--memory", "1G", "--duration", "2s"});
  EXPECT_EQ(id, "1") << "as on the page";
  ASSERT_TRUE(daemon.reaches(id, "COMPLETED")) << daemon.log();
  walk_shapes("docs/monitoring.md", 5);
}

TEST_F(PagesOfReadings, AlertsLookAsOnTheirPage) {
  const Finished injected = run_command({program("gpu-emulator"), "inject", "temperature", "88",
                                         "--data-dir", daemon.data_dir(), "--gpu", "dgx-h100-1:7"});
  ASSERT_EQ(injected.exit_code, 0) << injected.err;
  walk_shapes("docs/alerts.md", 2);
}

// ---- the page about money

// The first configuration that a page shows.
std::string configuration_of(const std::string& page) {
  const std::string head = "```yaml\n";
  const std::string text = read_file(kSources + "/" + page);
  const std::size_t begin = text.find(head) + head.size();
  return text.substr(begin, text.find("```", begin) - begin);
}

class PageOfMoney : public PagesOfReadings {
 protected:
  PageOfMoney() : PagesOfReadings(configuration_of("docs/accounting.md")) {}
};

// Its figures are those of the demo. Here the same kinds of jobs run for a second.
TEST_F(PageOfMoney, AccountingLooksAsOnItsPage) {
  const std::vector<std::vector<std::string>> jobs = {
      {"--team", "language", "--project", "assistant", "--gpus", "2"},
      {"--team", "vision", "--project", "maps", "--gpus", "1", "--label", "experiment=lr"},
      {"--team", "search", "--gpus", "0", "--cpus", "1"},
      {"--team", "search", "--gpus", "2"},
  };
  for (std::vector<std::string> options : jobs) {
    options.insert(options.end(), {"--time", "5m", "--", "/bin/sleep", "1"});
    const std::string id = daemon.submit(options);
    ASSERT_TRUE(daemon.reaches(id, "COMPLETED")) << id << "\n" << daemon.log();
  }
  walk_shapes("docs/accounting.md", 9);
}

// ---- the page for administrators

// The people of the page, as accounts that every Debian has.
const std::map<std::string, std::string> kAccounts = {
    {"ann", "bin"},     {"bob", "sys"},      {"carol", "games"}, {"dave", "man"},
    {"erin", "lp"},     {"frank", "mail"},   {"grace", "news"},  {"heidi", "uucp"},
    {"auditor", "irc"}, {"monitor", "list"},
};

std::string with_accounts(std::string text) {
  for (const auto& [person, account] : kAccounts) {
    text = std::regex_replace(text, std::regex("\\b" + person + "\\b"), account);
  }
  return text;
}

// The page's file of teams and roles.
std::string people_of_the_page() {
  const std::string text = read_file(kSources + "/docs/administration.md");
  const std::string head = "# /etc/gpu-platform/people.yaml\n";
  const std::size_t begin = text.find(head);
  const std::size_t end = text.find("```", begin);
  return with_accounts(text.substr(begin + head.size(), end - begin - head.size()));
}

class AdministratorsPage : public SeveralUsers {
 protected:
  AdministratorsPage() : SeveralUsers({.config = people_of_the_page()}) {}

  // The command as it is typed here, and the account that types it: the person that the comment
  // begins with, or root.
  struct Typed {
    std::string command;
    std::string account;
  };
  Typed typed(const std::string& line) const {
    std::smatch comment;
    std::string account = "root";
    if (std::regex_search(line, comment, std::regex(R"(\s+# ([a-z]+)[,;])")) &&
        kAccounts.contains(comment[1])) {
      account = kAccounts.at(comment[1]);
    }
    std::string command = std::regex_replace(line, std::regex(R"(^sudo |\s+#.*$)"), "");
    command = std::regex_replace(command, std::regex("/etc/gpu-platform"), daemon_.directory());
    command = std::regex_replace(command, std::regex("dgx-1:"), "dgx-h100-1:");
    return {with_accounts(command), account};
  }

  Finished type(const Typed& typed) const {
    const std::string programs = std::filesystem::path(program("gpu-platform")).parent_path();
    return as(
        typed.account.c_str(),
        {"/usr/bin/env", "PATH=" + programs + ":/usr/bin:/bin",
         "GPU_PLATFORM_SERVER=unix:" + daemon_.socket(), "TZ=UTC", "/bin/bash", "-c",
         "cd " + (typed.account == "root" ? daemon_.directory() : "/") + "; " + typed.command});
  }
};

TEST_F(AdministratorsPage, ItsCommandsDoWhatItSays) {
  std::size_t typed_commands = 0;
  std::map<std::string, std::string> printed;
  for (const Block& block : blocks_of("docs/administration.md")) {
    for (const std::string& line : block.lines) {
      // What a server with TLS is needed for is in listener_test.
      const bool is_ours = !command_in(line).empty();
      if (!is_ours || line.find(" login ") != std::string::npos) continue;
      const Typed words = typed(line);
      const Finished done = type(words);
      const bool is_about_this_host = words.command == "gpu-platform doctor";
      EXPECT_TRUE(done.exit_code == 0 || (is_about_this_host && done.exit_code == 1))
          << block.place << ": " << words.command << "\n"
          << done.err;
      printed[words.command] += done.out;
      ++typed_commands;
    }
  }
  EXPECT_GE(typed_commands, 18U);
  const nlohmann::json audio = daemon_.json({"team", "show", "audio"});
  EXPECT_EQ(audio["parent"], "speech");
  const auto has_member = [&](const char* person) {
    return audio["members"].dump().find(kAccounts.at(person)) != std::string::npos;
  };
  EXPECT_TRUE(has_member("erin") && has_member("grace") && has_member("heidi")) << audio;
  const std::string trail = printed["gpu-platform audit list --outcome refused --json"];
  EXPECT_TRUE(nlohmann::json::parse(trail).contains("entries")) << trail;
  const Finished tokens = daemon_.cli({"token", "list", "--all-users"});
  EXPECT_EQ(tokens.out.find("prometheus"), std::string::npos) << "it was revoked";
}

}  // namespace
}  // namespace gpu_platform::e2e
