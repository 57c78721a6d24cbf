#include "base/check.h"
#include "base/hash.h"
#include "target.h"
#include "telemetry/block.h"

// The target reads blocks of the history's file. Inputs stand without the hash at a block's end,
// which would keep the search out.

namespace gpu_platform::fuzz {

namespace {

constexpr std::size_t kHashBytes = 8;

std::string with_hash(std::string_view input) {
  std::string bytes(input);
  std::uint64_t hash = base::hash64(input);
  for (std::size_t i = 0; i < kHashBytes; ++i, hash >>= 8) {
    bytes.push_back(static_cast<char>(hash & 0xff));
  }
  return bytes;
}

std::string without_hash(const telemetry::Block& block) {
  std::string bytes = telemetry::encode_block(block);
  bytes.resize(bytes.size() - kHashBytes);
  return bytes;
}

telemetry::Block block_of(telemetry::Tier tier) {
  telemetry::Block block{.tier = tier, .times = {}, .columns = {}};
  telemetry::Column all{.metric = "power_watts"};
  telemetry::Column few{.metric = "energy_mj"};
  for (int i = 0; i < 100; ++i) {
    block.times.emplace_back(1'760'000'000'000'000'000 + i * 1'000'000'007LL);
    all.values.push_back(700'000 + i * i % 1'009);
    if (i % 30 == 7) few.places.push_back(static_cast<std::uint32_t>(i));
    if (i % 30 == 7) few.values.push_back(i * 650'000);
  }
  if (tier != telemetry::Tier::kRaw) {
    for (telemetry::Column* const column : {&all, &few}) {
      column->min = column->values;
      column->max = column->values;
      column->count.assign(column->values.size(), 60);
    }
    for (const std::int64_t value : all.values) all.spread.emplace_back().add(value, 60);
  }
  block.columns = {all, few};
  return block;
}

}  // namespace

void run(std::string_view input) {
  (void)telemetry::decode_block(input);
  const auto block = telemetry::decode_block(with_hash(input));
  if (!block) return;
  const std::string bytes = telemetry::encode_block(*block);
  const auto again = telemetry::decode_block(bytes);
  CHECK(again && *again == *block);
  CHECK(telemetry::encode_block(*again) == bytes);
}

std::vector<std::string> seeds() {
  return {without_hash({}), without_hash(block_of(telemetry::Tier::kRaw)),
          without_hash(block_of(telemetry::Tier::kMinute)),
          without_hash(block_of(telemetry::Tier::kQuarterHour))};
}

}  // namespace gpu_platform::fuzz
