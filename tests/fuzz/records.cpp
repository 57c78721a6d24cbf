#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/codec.h"
#include "node/record.h"
#include "target.h"

// The file that says what became of an attempt, and the notices beside it. Slots have checksums,
// which no search finds: the input is also taken as what slots hold.

namespace gpu_platform::fuzz {

namespace {

node::Record draw_record(std::string_view input) {
  base::Decoder in(input);
  node::Record record;
  node::Beginning beginning;
  beginning.attempt = {model::JobId(in.u64()), static_cast<std::uint32_t>(in.u64())};
  beginning.boot_id = in.text().substr(0, 64);
  beginning.supervisor_pid = static_cast<std::uint32_t>(in.u64());
  beginning.supervisor_ticks = in.u64();
  beginning.uid = static_cast<std::uint32_t>(in.u64());
  beginning.cgroup = in.text().substr(0, 1024);
  record.beginning = beginning;
  record.started =
      node::StartedRecord{static_cast<std::uint32_t>(in.u64()), base::Instant(in.i64()), in.u64()};
  node::EndRecord end;
  end.kind = static_cast<node::EndKind>(in.u64() % 3);
  end.value = static_cast<std::uint8_t>(in.u64());
  end.cause = static_cast<node::EndCause>(in.u64() % node::kEndCauses);
  end.stop_code = static_cast<std::uint8_t>(in.u64());
  end.at = base::Instant(in.i64());
  end.cpu_time = base::Duration(in.i64());
  end.peak_memory = base::Bytes(in.i64());
  end.detail = in.text().substr(0, 1024);
  record.end = end;
  record.cleaned =
      node::CleanedRecord{base::Instant(in.i64()), std::string(in.text().substr(0, 160))};
  return record;
}

std::string file_of(const node::Record& record) {
  std::string file = node::encode_new_record(*record.beginning);
  CHECK(file.size() == node::kRecordSize);
  for (const node::SlotBytes& slot :
       {node::encode_slot(*record.started), node::encode_slot(*record.end),
        node::encode_slot(*record.cleaned)}) {
    CHECK(slot.offset + slot.bytes.size() <= file.size());
    file.replace(slot.offset, slot.bytes.size(), slot.bytes);
  }
  return file;
}

void expect_same(const node::Record& a, const node::Record& b) {
  CHECK(a.beginning == b.beginning && a.started == b.started);
  CHECK(a.end == b.end && a.cleaned == b.cleaned);
}

}  // namespace

void run(std::string_view input) {
  node::decode_record(input);
  std::string padded(input.substr(0, node::kRecordSize));
  padded.resize(node::kRecordSize);
  node::decode_record(padded);

  const node::Record record = draw_record(input);
  std::string file = file_of(record);
  const node::Record read = node::decode_record(file);
  expect_same(read, record);
  // One changed byte costs one slot at most, and no slot says something else than it did.
  if (input.size() >= 3) {
    const std::size_t at =
        (static_cast<unsigned char>(input[0]) << 8 | static_cast<unsigned char>(input[1])) %
        file.size();
    file[at] = static_cast<char>(file[at] ^ (input[2] | 1));
    const node::Record damaged = node::decode_record(file);
    int lost = 0;
    const auto compare = [&](const auto& then, const auto& now) {
      CHECK(!now || now == then);
      if (!now) ++lost;
    };
    compare(record.beginning, damaged.beginning);
    compare(record.started, damaged.started);
    compare(record.end, damaged.end);
    compare(record.cleaned, damaged.cleaned);
    CHECK(lost <= 1);
  }

  if (const auto notice = node::decode_notice(input)) {
    const std::string bytes = node::encode_notice(*notice);
    CHECK(bytes.size() == node::kNoticeSize);
    const auto again = node::decode_notice(bytes);
    CHECK(again && *again == *notice);
  }
}

std::vector<std::string> seeds() {
  node::Record record = draw_record("");
  record.beginning =
      node::Beginning{{model::JobId(42), 1}, "8d3f", 4711, 99, 1500, "/sys/fs/cgroup/x/42-1"};
  std::vector<std::string> seeds{file_of(record)};
  node::Notice notice;
  notice.attempt = {model::JobId(42), 1};
  notice.started.pid = 4712;
  seeds.push_back(node::encode_notice(notice));
  notice.kind = node::Notice::Kind::kCleaned;
  notice.ended_too = true;
  notice.end.value = 3;
  seeds.push_back(node::encode_notice(notice));
  notice.kind = node::Notice::Kind::kEnded;
  notice.has_detail = true;
  seeds.push_back(node::encode_notice(notice));
  std::string fields;
  base::Encoder out(fields);
  out.u64(42);
  out.u64(1);
  out.text("8d3f");
  out.u64(4711);
  out.u64(99);
  out.u64(1500);
  out.text("/sys/fs/cgroup/x/42-1");
  seeds.push_back(fields);
  return seeds;
}

}  // namespace gpu_platform::fuzz
