// Stores that earlier programs left (make): they are read, replayed to the same decisions and shown
// as they were shown. README.md says how to record the answers anew where a change of them is
// meant.

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "controller/invariants.h"
#include "frozen_clock.h"
#include "harness.h"
#include "moving_values.h"
#include "store/sqlite/repair.h"
#include "stored_site.h"

namespace gpu_platform::corpus {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = GP_CORPUS_DIRECTORY;

std::vector<std::string> lives() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".tar.gz")) found.push_back(name.substr(0, name.size() - 7));
  }
  std::ranges::sort(found);
  return found;
}

std::string read(const fs::path& path) {
  return e2e::read_file(path);
}

// The recorded text, or where it is to be recorded, the text itself.
std::string recorded(const std::string& name, const std::string& text) {
  const fs::path path = kFolder / name;
  if (std::getenv("GP_CORPUS_RECORD") != nullptr) std::ofstream(path) << text;
  return read(path);
}

// The lines of the one that the other has not in its place, with where JSON differs.
std::string difference(const std::string& was, const std::string& is) {
  const auto before = e2e::lines_of(was);
  const auto after = e2e::lines_of(is);
  std::string text;
  std::string question;
  for (std::size_t i = 0; i < std::max(before.size(), after.size()) && text.size() < 8000; ++i) {
    const std::string old_line = i < before.size() ? before[i] : "(nothing)";
    const std::string new_line = i < after.size() ? after[i] : "(nothing)";
    if (new_line.starts_with("$ ")) question = new_line;
    if (old_line == new_line) continue;
    const auto a = nlohmann::json::parse(old_line, nullptr, false);
    const auto b = nlohmann::json::parse(new_line, nullptr, false);
    text += question + "\n";
    text += a.is_discarded() || b.is_discarded()
                ? "- " + old_line + "\n+ " + new_line + "\n"
                : "from the recorded answer: " + nlohmann::json::diff(a, b).dump() + "\n";
    if (before.size() != after.size()) return text + "(and more)\n";
  }
  return text;
}

void unpack(const std::string& life, const std::string& folder) {
  const auto unpacked =
      e2e::run_command({"/usr/bin/tar", "-xzf", kFolder / (life + ".tar.gz"), "-C", folder});
  ASSERT_EQ(unpacked.exit_code, 0) << unpacked.err;
}

base::Result<std::unique_ptr<store::SqliteStore>> open_store(const std::string& folder) {
  return store::SqliteStore::open(
      {.dir = folder, .headroom = {.ballast = base::Bytes(), .low_water = base::Bytes()}});
}

// The clock of the answers.
base::Instant day_of(const controller::State& state) {
  return state.at + base::seconds(1);
}
std::string frozen_time(base::Instant now) {
  return fmt::format("GP_FROZEN_TIME_NS={}", now.unix_ns());
}
constexpr const char* kFrozenClock = "LD_PRELOAD=" GP_FROZEN_CLOCK;

void expect_same(const std::string& was, const std::string& is) {
  const std::string differences = difference(was, is);
  EXPECT_TRUE(differences.empty()) << differences;
}

class Corpus : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { unpack(GetParam(), directory_.path()); }
  void TearDown() override { freeze_time(0); }

  void open() {
    auto opened = open_store(directory_.path());
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
    auto state = recovered_state(*store_);
    ASSERT_TRUE(state) << state.error().message;
    state_ = *std::move(state);
  }

  e2e::TemporaryDirectory directory_;
  std::unique_ptr<store::SqliteStore> store_;
  controller::State state_;
};

TEST_P(Corpus, IsSound) {
  const auto report = store::check_store(directory_.path());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->damages, std::vector<std::string>());
  EXPECT_TRUE(report->has_mark);
}

// Snapshots of versions without a ledger have no clocks of GPUs and no prices, and do not say why
// attempts were stopped: recovery makes the ledger from the events.
void take_over_accounts(controller::State& state, const controller::State& from) {
  if (state.accounts_since.is_set()) return;
  state.accounts_since = from.accounts_since;
  state.prices = from.prices;
  from.nodes.for_each([&](std::uint64_t id, const model::Node& node) {
    model::Node& same = *state.nodes.find_mutable(id);
    for (std::size_t i = 0; i < node.gpus.size(); ++i) same.gpus.at(i).clock = node.gpus[i].clock;
  });
  from.jobs.for_each([&](std::uint64_t id, const model::Job& job) {
    model::Job& same = *state.jobs.find_mutable(id);
    for (std::size_t i = 0; i < job.attempts.size(); ++i) {
      same.attempts.at(i).is_reclaimed = job.attempts[i].is_reclaimed;
    }
  });
}

// A snapshot is read as the events that it stands for, and nothing is lost in it.
TEST_P(Corpus, ItsSnapshotAndItsEventsGiveTheSameState) {
  open();
  const auto replayed = replayed_state(*store_, {});
  ASSERT_TRUE(replayed) << replayed.error().message;
  // Events tell more of past runs and starts than former snapshots kept.
  auto alike = controller::decode_state(encode_state(state_));
  ASSERT_TRUE(alike) << alike.error().message;
  alike->books.rewrite([&](auto& parts) { parts.history = replayed->books->history; });
  alike->scores = replayed->scores;
  take_over_accounts(*alike, *replayed);
  EXPECT_EQ(differences(*alike, *replayed), std::vector<std::string_view>());
  EXPECT_TRUE(encode_state(*alike) == encode_state(*replayed)) << "the bytes differ";
  EXPECT_EQ(check_invariants(state_), std::vector<std::string>());
  const auto again = controller::decode_state(encode_state(state_));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(encode_state(*again) == encode_state(state_)) << "the bytes differ";
}

// Before each event: what the core would do by itself at its time.
TEST_P(Corpus, DecidesAsItDid) {
  open();
  std::string text;
  const auto replayed = replayed_state(
      *store_, [&](const controller::State& state, const model::EventRecord& record) {
        text += fmt::format("before {} {}\n", record.seq.value, model::name_of(record.event));
        const base::Instant now = std::max(record.at, state.at);
        for (const std::string& line : decisions_in(state, now)) text += "  " + line + "\n";
      });
  ASSERT_TRUE(replayed) << replayed.error().message;
  text += "at the end\n";
  for (const std::string& line : decisions_in(*replayed, replayed->at)) text += "  " + line + "\n";
  expect_same(recorded(GetParam() + ".decisions.txt", text), text);
}

// Asks questions with the clock of that day.
class Interview {
 public:
  Interview(const std::string& socket, base::Instant now)
      : environment_({"GPU_PLATFORM_SERVER=unix:" + socket, "TZ=UTC", "LC_ALL=C", "COLUMNS=200",
                      kFrozenClock, frozen_time(now)}) {
    const auto list =
        nlohmann::json::parse(ask({"gpu-platform", "jobs", "list", "--all", "--json"}).out);
    for (const auto& job : list["jobs"]) jobs_.push_back(job["id"]);
    EXPECT_FALSE(jobs_.empty());
  }

  // The answers to the questions of the file, one after another.
  std::string answers(const char* file) const {
    std::string text;
    for (const std::string& line : e2e::lines_of(read(kFolder / file))) {
      if (line.empty() || line.starts_with('#')) continue;
      const bool is_of_each_job = line.find(" JOB") != std::string::npos;
      if (!is_of_each_job) text += answer_to(line);
      for (const std::string& job : is_of_each_job ? jobs_ : std::vector<std::string>()) {
        text += answer_to(std::regex_replace(line, std::regex("JOB"), job));
      }
    }
    return text;
  }

 private:
  e2e::Finished ask(std::vector<std::string> words) const {
    words[0] = e2e::program(words[0] == "gpu-platform" ? words[0] : "slurm-shims/" + words[0]);
    return e2e::run_command(words, environment_);
  }
  std::string answer_to(const std::string& question) const {
    std::istringstream in(question);
    const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
    const e2e::Finished done = ask(words);
    std::string text =
        "$ " + question + "\n" + without_moving_values(done.out) + without_moving_values(done.err);
    if (!text.ends_with('\n')) text += '\n';
    return text + fmt::format("= {}\n", done.exit_code);
  }

  const std::vector<std::string> environment_;
  std::vector<std::string> jobs_;
};

TEST_P(Corpus, IsShownAsItWas) {
  open();
  const base::Instant now = day_of(state_);
  freeze_time(now.unix_ns());
  const std::string socket = directory_.path() + "/socket";
  const auto site = StoredSite::open(*store_, now, socket);
  ASSERT_TRUE(site) << site.error().message;
  const Interview interview(socket, now);
  const std::string answers = interview.answers("questions.txt");
  expect_same(recorded(GetParam() + ".answers.txt", answers), answers);
  const std::string judgements = interview.answers("orders.txt");
  expect_same(recorded(GetParam() + ".judgements.txt", judgements), judgements);
  const std::string hardware = interview.answers("hardware_questions.txt");
  expect_same(recorded(GetParam() + ".hardware.txt", hardware), hardware);
}

// The life in which nothing runs and nothing is to come: a daemon finds on its node what was there,
// and changes nothing.
TEST(CorpusServed, ADaemonShowsItAsItWas) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: its jobs are those of several users";
  const e2e::TemporaryDirectory directory;
  unpack("still", directory.path());
  base::Instant now;
  {
    const auto store = open_store(directory.path());
    ASSERT_TRUE(store) << store.error().message;
    const auto state = recovered_state(**store);
    ASSERT_TRUE(state) << state.error().message;
    now = day_of(*state);
  }
  // The defaults of its day: another policy would be an event.
  e2e::Daemon daemon({.emulate = "dgx-h100",
                      .config = "scheduling: {max_queue_size: 1000, default_time_limit: 0s}\n"
                                "policies: {highest_user_priority: critical}\n"
                                "accounting: {prices: []}\n",
                      .data_dir = directory.path(),
                      .prefix = {"/usr/bin/env", kFrozenClock, frozen_time(now)}});
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const std::string answers = Interview(daemon.socket(), now).answers("questions.txt");
  expect_same(read(kFolder / "still.answers.txt"), answers);
  EXPECT_EQ(daemon.terminate(), 0) << daemon.log();
}

INSTANTIATE_TEST_SUITE_P(Lives, Corpus, testing::ValuesIn(lives()),
                         [](const auto& life) { return life.param; });

}  // namespace
}  // namespace gpu_platform::corpus
