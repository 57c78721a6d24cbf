#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "base/check.h"
#include "model/job_spec.h"
#include "store/sqlite/repair.h"
#include "store/sqlite/sqlite_store.h"
#include "store/test_support.h"
#include "target.h"

// A journal whose files were damaged. The input is a list of damages, of eight bytes each, done to
// a sound store: with a log beside the database, as a crash leaves it.

namespace gpu_platform::fuzz {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kEvents = 12;
constexpr const char* kFiles[] = {"store.db", "store.db-wal", "store.marker"};

store::SqliteOptions options_for(const fs::path& dir) {
  return {.dir = dir, .headroom = {.ballast = base::Bytes(), .low_water = base::Bytes()}};
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// The files of a store in use: half of its events in the database, half in the log.
std::map<std::string, std::string> sound_files() {
  const store::TemporaryDirectory dir;
  std::map<std::string, std::string> files;
  for (std::uint64_t half = 0; half < 2; ++half) {
    const auto opened = store::SqliteStore::open(options_for(dir.path()));
    CHECK(opened);
    const std::uint64_t first = half * kEvents / 2 + 1;
    for (std::uint64_t seq = first; seq < first + kEvents / 2; seq += 3) {
      const std::vector<model::Job> ended{store::JobBuilder(seq + 2)};
      CHECK(store::append_events(**opened, seq, seq + 2, ended,
                                 {{"env-" + std::to_string(seq), "A=1"}}));
    }
    if (half == 0) CHECK((*opened)->put_snapshot({model::EventSeq(kEvents / 2), "state"}));
    for (const char* file : kFiles) files[file] = read_file(dir.path() / file);
  }
  return files;
}

// Each eight bytes say what is done, to which file, where (four bytes, or as much as the file has)
// and with what.
void damage(std::map<std::string, std::string>& files, std::string_view input) {
  for (; input.size() >= 8; input.remove_prefix(8)) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(input[i]); };
    std::string& file = files[kFiles[byte(1) % std::size(kFiles)]];
    if (file.empty()) continue;
    const std::size_t at = (byte(2) | byte(3) << 8 | byte(4) << 16) % file.size();
    switch (byte(0) % 5) {
      case 0:
        file[at] = input[7];
        break;
      case 1:
        file[at] = static_cast<char>(file[at] ^ 1 << byte(7) % 8);
        break;
      case 2:
        file.resize(at);
        break;
      case 3:  // a page of zeros, as a disk may give it
        file.replace(at / 4096 * 4096, 4096, std::string(4096, '\0'));
        break;
      default:  // a page in the place of another
        const std::string page = file.substr(at / 4096 * 4096, 4096);
        const std::size_t to = byte(5) * 4096UL % file.size();
        file.replace(to, page.size(), page);
        break;
    }
  }
}

// Each event that is read was stored: an event may be lost, none becomes another.
void expect_true_events(const fs::path& dir) {
  const auto opened = store::SqliteStore::open(options_for(dir));
  if (!opened) return;
  (void)(*opened)->replay(model::EventSeq(), [&](const model::EventRecord& record) -> base::Status {
    if (const auto* repaired = std::get_if<model::StoreRepaired>(&record.event)) {
      for (const model::ArchivedEnd& end : repaired->ended) CHECK(end.job.value <= kEvents);
      return {};
    }
    if (std::holds_alternative<model::CallAudited>(record.event)) return {};  // of a later event
    // That of a job behind damage has another place, and may be held.
    if (const auto* submitted = std::get_if<model::JobSubmitted>(&record.event)) {
      CHECK(submitted->job.value >= 1 && submitted->job.value <= kEvents);
      const auto was = store::event_at(submitted->job.value);
      CHECK(*submitted->spec == *std::get<model::JobSubmitted>(was.event).spec);
      return {};
    }
    CHECK(record.seq.value >= 1 && record.seq.value <= kEvents);
    CHECK(store::bytes_of(record) == store::bytes_of(store::event_at(record.seq.value)));
    return {};
  });
  (void)(*opened)->newest_snapshot(nullptr);
  (void)(*opened)->list({});
}

}  // namespace

void run(std::string_view input) {
  static const std::map<std::string, std::string> sound = sound_files();
  const store::TemporaryDirectory dir;
  std::map<std::string, std::string> files = sound;
  damage(files, input.substr(0, 64));
  for (const auto& [name, bytes] : files) write_file(dir.path() / name, bytes);

  const auto before = store::check_store(dir.path());
  if (before && before->is_sound()) return expect_true_events(dir.path());
  expect_true_events(dir.path());
  const auto recovered = store::recover_store(dir.path());
  if (!recovered) return;
  const auto after = store::check_store(dir.path());
  CHECK(after && after->is_sound());
  CHECK(store::SqliteStore::open(options_for(dir.path())));
  expect_true_events(dir.path());
}

std::vector<std::string> seeds() {
  using namespace std::string_literals;
  return {""s,
          "\0\0\x10\0\0\0\0\x01"s,
          "\1\1\x30\0\0\0\0\x03"s,
          "\2\0\0\x20\0\0\0\0"s,
          "\3\0\0\x10\0\0\0\0"s,
          "\4\0\0\x20\0\3\0\0"s,
          "\2\1\x40\x08\0\0\0\0"s};
}

}  // namespace gpu_platform::fuzz
