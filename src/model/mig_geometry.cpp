#include "model/mig_geometry.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::model {

namespace {

constexpr std::string_view kMedia = "me";
constexpr std::string_view kAllMedia = "me.all";
constexpr MigGroups kMediaGroup = 1;

constexpr MigSlices starts_at(std::initializer_list<unsigned> slices) {
  unsigned starts = 0;
  for (const unsigned slice : slices) starts |= 1U << slice;
  return static_cast<MigSlices>(starts);
}

MigSlices run_of(std::uint32_t start, std::uint32_t size) {
  return static_cast<MigSlices>(((1U << size) - 1) << start);
}

bool has_media(const MigProfileName& name) {
  return std::ranges::any_of(name.attributes, [](const MigAttribute& attribute) {
    return attribute.sign == '+' && (attribute.name == kMedia || attribute.name == kAllMedia);
  });
}

// ---- The table.

// How the profiles of one size are named, and their memory in MiB (0: not known), on one type.
struct SizeOnType {
  std::uint32_t memory_gb = 0;
  std::int64_t memory_mib = 0;
};

// GPUs of 7 compute and 8 memory slices. Their profiles differ in names and memory alone.
struct SevenSliceType {
  std::string_view gpu_type;
  SizeOnType one;    // 1g, and with +me
  SizeOnType two;    // 2g, and 1g with the memory of two
  SizeOnType three;  // 3g and 4g, which have half of the memory
  SizeOnType seven;  // 7g
};

// Names: NVIDIA's guide to MIG. Memory: of A100, H100-80GB and H200 as the driver tells it
// (docs/gpu-results has the last two).
constexpr SevenSliceType kSevenSliceTypes[] = {
    {"A100-40GB", {5, 4864}, {10, 9856}, {20, 19968}, {40, 40192}},
    {"A100-80GB", {10, 9856}, {20, 19968}, {40, 40192}, {80, 80384}},
    {"B200-180GB", {23, 0}, {45, 0}, {90, 0}, {180, 0}},
    {"H100-80GB", {10, 9984}, {20, 20096}, {40, 40448}, {80, 81152}},
    {"H100-94GB", {12, 0}, {24, 0}, {47, 0}, {94, 0}},
    {"H100-96GB", {12, 0}, {24, 0}, {48, 0}, {96, 0}},
    {"H200-141GB", {18, 16384}, {35, 33280}, {71, 71424}, {141, 143360}},
};

// The driver's ids and starts of these, the same on all of them.
MigProfile profile(std::uint32_t id, std::uint32_t compute_slices, std::uint32_t memory_slices,
                   MigSlices starts, const SizeOnType& size) {
  MigProfile result;
  result.name = {.compute_slices = compute_slices, .memory_gb = size.memory_gb};
  result.id = id;
  result.compute_slices = compute_slices;
  result.memory_slices = memory_slices;
  result.starts = starts;
  if (size.memory_mib > 0) result.memory = base::kMiB * size.memory_mib;
  return result;
}

MigProfile with_media(MigProfile plain, std::uint32_t id) {
  plain.id = id;
  plain.name.attributes.push_back({.sign = '+', .name = std::string(kMedia)});
  plain.groups = kMediaGroup;
  return plain;
}

MigGeometry sorted(MigGeometry geometry) {
  std::ranges::sort(geometry.profiles, {}, &MigProfile::name);
  return geometry;
}

MigGeometry geometry_of_type(const SevenSliceType& type) {
  constexpr MigSlices kOfOne = starts_at({0, 1, 2, 3, 4, 5, 6});
  const MigProfile one = profile(19, 1, 1, kOfOne, type.one);
  return sorted(
      {.compute_slices = 7,
       .memory_slices = 8,
       .profiles = {one, with_media(one, 20), profile(15, 1, 2, starts_at({0, 2, 4, 6}), type.two),
                    profile(14, 2, 2, starts_at({0, 2, 4}), type.two),
                    profile(9, 3, 4, starts_at({0, 4}), type.three),
                    profile(5, 4, 4, starts_at({0}), type.three),
                    profile(0, 7, 8, starts_at({0}), type.seven)}});
}

MigGeometry geometry_of_a30() {
  const MigProfile one = profile(14, 1, 1, starts_at({0, 1, 2, 3}), {6, 5952});
  const MigProfile two = profile(5, 2, 2, starts_at({0, 2}), {12, 11968});
  return sorted({.compute_slices = 4,
                 .memory_slices = 4,
                 .profiles = {one, with_media(one, 21), two, with_media(two, 6),
                              profile(0, 4, 4, starts_at({0}), {24, 0})}});
}

struct KnownGeometry {
  std::string_view gpu_type;
  MigGeometry geometry;
};

// Ascending type.
const std::vector<KnownGeometry>& known_geometries() {
  static const std::vector<KnownGeometry> kKnown = [] {
    std::vector<KnownGeometry> known = {{"A30-24GB", geometry_of_a30()}};
    for (const SevenSliceType& type : kSevenSliceTypes) {
      known.push_back({type.gpu_type, geometry_of_type(type)});
    }
    std::ranges::sort(known, {}, &KnownGeometry::gpu_type);
    return known;
  }();
  return kKnown;
}

// ---- What the driver tells.

// The attributes of the profiles that NVML has numbers for, where the driver does not name them.
std::vector<MigAttribute> attributes_by_number(std::uint32_t number) {
  switch (number) {
    case 0x7:  // of one slice
    case 0x8:  // of two
      return {{.sign = '+', .name = "me"}};
    case 0xA:
    case 0xB:
    case 0xC:
      return {{.sign = '+', .name = "gfx"}};
    case 0xD:
    case 0xE:
      return {{.sign = '-', .name = "me"}};
    case 0xF:
    case 0x10:
      return {{.sign = '+', .name = "me.all"}};
    default:
      return {};
  }
}

// The driver's rule: memory in eighths of the GPU's, rounded up, and then in whole GB of the GPU's
// name, rounded half up.
std::uint32_t memory_gb_by_rule(base::Bytes memory, base::Bytes gpu_memory) {
  constexpr std::int64_t kEighths = 8;
  const std::int64_t whole = gpu_memory.value();
  const std::int64_t eighths = (memory.value() * kEighths + whole - 1) / whole;
  const std::int64_t gib = (whole + base::kGiB.value() - 1) / base::kGiB.value();
  return static_cast<std::uint32_t>((eighths * gib * 2 + kEighths) / (kEighths * 2));
}

base::Result<MigProfileName> name_in_facts(const MigProfileFacts& facts, base::Bytes gpu_memory) {
  if (!facts.name.empty()) return parse_mig_profile(facts.name);
  return MigProfileName{.compute_slices = facts.compute_slices,
                        .memory_gb = memory_gb_by_rule(facts.memory, gpu_memory),
                        .attributes = attributes_by_number(facts.number)};
}

std::unexpected<base::Error> not_modelled(const MigProfileName& name, std::string_view why) {
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    fmt::format("the MIG profile {} {}", to_string(name), why));
}

base::Result<MigProfile> profile_of(const MigProfileFacts& facts, base::Bytes gpu_memory) {
  MigProfile profile;
  TRY_ASSIGN(profile.name, name_in_facts(facts, gpu_memory));
  profile.id = facts.id;
  profile.compute_slices = facts.compute_slices;
  profile.memory = facts.memory;
  if (facts.compute_slices == 0 || facts.compute_slices > kMaxMigSlices) {
    return not_modelled(profile.name, fmt::format("has {} compute slices", facts.compute_slices));
  }
  if (facts.placements.empty()) return not_modelled(profile.name, "has no placement");
  profile.memory_slices = facts.placements.front().size;
  for (const auto& placement : facts.placements) {
    if (placement.size != profile.memory_slices) {
      return not_modelled(profile.name, "has placements of several sizes");
    }
    if (placement.size == 0 || placement.size > kMaxMigSlices ||
        placement.start > kMaxMigSlices - placement.size) {
      return not_modelled(profile.name,
                          fmt::format("has a placement of {} from {}, and there are "
                                      "at most {} memory slices",
                                      placement.size, placement.start, kMaxMigSlices));
    }
    profile.starts |= run_of(placement.start, 1);
  }
  return profile;
}

// Returns how many instances of the profile alone fit beside each other. Taking the first start
// that is free is exact, because they are of one length.
std::uint32_t side_by_side(const MigProfile& profile) {
  std::uint32_t count = 0;
  std::uint32_t end = 0;
  for (std::uint32_t start = 0; start < kMaxMigSlices; ++start) {
    if ((profile.starts >> start & 1) == 0 || start < end) continue;
    ++count;
    end = start + profile.memory_slices;
  }
  return count;
}

// Finds the groups of profiles of which a GPU has one instance at a time: the placements do not
// tell, but the number of instances does.
base::Status set_groups(MigGeometry& geometry, std::span<const MigProfileFacts> facts) {
  MigGroups next = kMediaGroup << 1;
  for (std::size_t i = 0; i < geometry.profiles.size(); ++i) {
    MigProfile& profile = geometry.profiles[i];
    const std::uint32_t by_placements =
        std::min(side_by_side(profile), geometry.compute_slices / profile.compute_slices);
    if (facts[i].max_instances >= by_placements) continue;
    if (facts[i].max_instances != 1) {
      return not_modelled(profile.name, fmt::format("has {} instances at most, although {} fit",
                                                    facts[i].max_instances, by_placements));
    }
    if (has_media(profile.name)) {
      profile.groups = kMediaGroup;
      continue;
    }
    if (next >= 1U << kMaxMigGroups) return not_modelled(profile.name, "has a limit of its own");
    profile.groups = next;
    next = static_cast<MigGroups>(next << 1);
  }
  return {};
}

std::string places_of(const MigProfile& profile) {
  std::string starts;
  for (std::uint32_t start = 0; start < kMaxMigSlices; ++start) {
    if ((profile.starts >> start & 1) == 0) continue;
    starts += fmt::format("{}{}", starts.empty() ? "" : ",", start);
  }
  return fmt::format("{{{}}}:{}", starts, profile.memory_slices);
}

void compare(const MigProfile& of_driver, const MigProfile& of_table,
             std::vector<std::string>& found) {
  const std::string name = to_string(of_driver.name);
  const auto differs = [&](std::string_view what, const auto& ours, const auto& theirs) {
    if (ours == theirs) return;
    found.push_back(fmt::format("{} has {} {}, not {}", name, what, ours, theirs));
  };
  differs("the id", of_driver.id, of_table.id);
  differs("the number of compute slices", of_driver.compute_slices, of_table.compute_slices);
  differs("the placements", places_of(of_driver), places_of(of_table));
  differs("the limits", of_driver.groups, of_table.groups);
}

}  // namespace

MigSlices slices_of(const MigProfile& profile, std::uint32_t start) {
  CHECK(start < kMaxMigSlices && (profile.starts >> start & 1) != 0);
  return run_of(start, profile.memory_slices);
}

std::optional<std::size_t> find_profile(const MigGeometry& geometry, const MigProfileName& name) {
  const auto found = std::ranges::lower_bound(geometry.profiles, name, {}, &MigProfile::name);
  if (found == geometry.profiles.end() || found->name != name) return std::nullopt;
  return static_cast<std::size_t>(found - geometry.profiles.begin());
}

std::string profiles_of(const MigGeometry& geometry) {
  std::string list;
  for (const MigProfile& profile : geometry.profiles) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", to_string(profile.name));
  }
  return list;
}

base::GpuShare share_of(const MigGeometry& geometry, const MigProfile& profile) {
  return base::GpuShare(base::kWholeGpu.value() * profile.compute_slices / geometry.compute_slices);
}

base::Bytes memory_of(const MigGeometry& geometry, const MigProfile& profile,
                      base::Bytes gpu_memory) {
  if (profile.memory) return *profile.memory;
  return base::Bytes(gpu_memory.value() / geometry.memory_slices * profile.memory_slices);
}

const MigGeometry* known_mig_geometry(std::string_view gpu_type) {
  const auto& known = known_geometries();
  const auto found = std::ranges::lower_bound(known, gpu_type, {}, &KnownGeometry::gpu_type);
  return found == known.end() || found->gpu_type != gpu_type ? nullptr : &found->geometry;
}

std::vector<std::string_view> gpu_types_with_mig() {
  std::vector<std::string_view> types;
  for (const KnownGeometry& known : known_geometries()) types.push_back(known.gpu_type);
  return types;
}

base::Result<MigGeometry> geometry_of(std::span<const MigProfileFacts> facts,
                                      base::Bytes gpu_memory) {
  if (gpu_memory <= base::Bytes()) {
    return base::invalid("memory", "the memory of the GPU must be more than 0");
  }
  MigGeometry geometry;
  for (const MigProfileFacts& each : facts) {
    TRY_ASSIGN(MigProfile profile, profile_of(each, gpu_memory));
    geometry.compute_slices = std::max(geometry.compute_slices, profile.compute_slices);
    const std::uint32_t end =
        static_cast<std::uint32_t>(std::bit_width(profile.starts)) - 1 + profile.memory_slices;
    geometry.memory_slices = std::max(geometry.memory_slices, end);
    geometry.profiles.push_back(std::move(profile));
  }
  TRY(set_groups(geometry, facts));
  geometry = sorted(std::move(geometry));
  const auto twice =
      std::ranges::adjacent_find(geometry.profiles, std::ranges::equal_to(), &MigProfile::name);
  if (twice != geometry.profiles.end()) return not_modelled(twice->name, "is there twice");
  return geometry;
}

std::vector<std::string> differences(const MigGeometry& of_driver, const MigGeometry& of_table) {
  std::vector<std::string> found;
  if (of_driver.compute_slices != of_table.compute_slices ||
      of_driver.memory_slices != of_table.memory_slices) {
    found.push_back(fmt::format("the GPU has {} compute and {} memory slices, not {} and {}",
                                of_driver.compute_slices, of_driver.memory_slices,
                                of_table.compute_slices, of_table.memory_slices));
  }
  for (const MigProfile& profile : of_driver.profiles) {
    const auto known = find_profile(of_table, profile.name);
    if (known) {
      compare(profile, of_table.profiles[*known], found);
    } else {
      found.push_back(to_string(profile.name) + " is new");
    }
  }
  for (const MigProfile& profile : of_table.profiles) {
    if (!find_profile(of_driver, profile.name)) {
      found.push_back(to_string(profile.name) + " is missing");
    }
  }
  return found;
}

}  // namespace gpu_platform::model
