#include "dcgm/engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvml/board.h"

namespace gpu_emulator {
namespace {

constexpr std::uint32_t kMaxGroups = 64;
constexpr int kMaxFields = 32;
// The counters that a GPU has at once where the library acts as single-pass.
constexpr int kMaxActivitiesAtOnce = 5;

struct FieldGroup {
  char name[256];
  unsigned short fields[kMaxFields];
  int count;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// All under the lock.
std::uint32_t groups[kMaxGroups];  // bit n: GPU n
std::uint32_t group_count = 0;
FieldGroup field_groups[kMaxGroups];
std::uint32_t field_group_count = 0;
std::uint32_t watchers[2048];  // by field; bit n: of GPU n

class Locked {
 public:
  Locked() { pthread_mutex_lock(&lock); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { pthread_mutex_unlock(&lock); }
};

bool is_number_of(std::uintptr_t number, std::uint32_t count) {
  return number >= 1 && number <= count;
}

bool has_name(const char* name) {
  for (std::uint32_t i = 0; i < field_group_count; ++i) {
    if (strcmp(field_groups[i].name, name) == 0) return true;
  }
  return false;
}

bool has_known_fields(const unsigned short* fields, int count) {
  for (int i = 0; i < count; ++i) {
    if (fields[i] >= sizeof watchers / sizeof watchers[0]) return false;
  }
  return true;
}

}  // namespace

bool acts_as(const char* word) {
  const char* told = getenv("GPU_EMULATOR_DCGM");
  return told != nullptr && strcmp(told, word) == 0;
}

void wait_while_told() {
  constexpr std::uint32_t kStepUs = 10'000;
  const char* path = getenv("GPU_EMULATOR_DCGM_HANG_WHILE");
  while (path != nullptr && access(path, F_OK) == 0) wait_us(kStepUs);
}

void clear_engine() {
  const Locked locked;
  group_count = 0;
  field_group_count = 0;
  memset(watchers, 0, sizeof watchers);
}

DcgmReturn add_group(std::uintptr_t* out) {
  const Locked locked;
  if (group_count == kMaxGroups) return kDcgmMaxLimit;
  groups[group_count] = 0;
  *out = ++group_count;
  return kDcgmOk;
}

DcgmReturn add_to_group(std::uintptr_t group, unsigned int gpu) {
  const Locked locked;
  if (!is_number_of(group, group_count)) return kDcgmBadParameter;
  groups[group - 1] |= 1U << gpu;
  return kDcgmOk;
}

DcgmReturn add_fields(const unsigned short* fields, int count, const char* name,
                      std::uintptr_t* out) {
  const Locked locked;
  const bool is_named = strlen(name) < sizeof FieldGroup::name;
  if (!is_named || count < 1 || count > kMaxFields || !has_known_fields(fields, count)) {
    return kDcgmBadParameter;
  }
  if (has_name(name)) return kDcgmDuplicateKey;
  if (field_group_count == kMaxGroups) return kDcgmMaxLimit;
  FieldGroup& added = field_groups[field_group_count];
  strcpy(added.name, name);
  memcpy(added.fields, fields, static_cast<std::size_t>(count) * sizeof *fields);
  added.count = count;
  *out = ++field_group_count;
  return kDcgmOk;
}

DcgmReturn watch(std::uintptr_t group, std::uintptr_t fields) {
  const Locked locked;
  const bool are_known =
      is_number_of(group, group_count) && is_number_of(fields, field_group_count);
  if (!are_known) return kDcgmBadParameter;
  const FieldGroup& wanted = field_groups[fields - 1];
  int activities = 0;
  for (int i = 0; i < wanted.count; ++i) activities += is_activity(wanted.fields[i]) ? 1 : 0;
  if (activities > kMaxActivitiesAtOnce && acts_as("single-pass")) return kDcgmMultiPass;
  for (int i = 0; i < wanted.count; ++i) watchers[wanted.fields[i]] |= groups[group - 1];
  return kDcgmOk;
}

bool is_watched(unsigned int gpu, unsigned short field) {
  const Locked locked;
  return (watchers[field] >> gpu & 1) != 0;
}

}  // namespace gpu_emulator
