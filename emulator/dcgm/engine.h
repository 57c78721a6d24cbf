#pragma once

#include <cstdint>

#include "dcgm/dcgm_abi.h"

// What the library's one host engine keeps: groups of GPUs, groups of fields, and which fields of
// which GPU are watched. Guarded by its own lock. Numbers count from 1.

namespace gpu_emulator {

// What a test has the library do, from GPU_EMULATOR_DCGM.
bool acts_as(const char* word);
// Waits while the file that GPU_EMULATOR_DCGM_HANG_WHILE names is there.
void wait_while_told();

// A field that takes a GPU's counters.
inline bool is_activity(unsigned short field) {
  return field >= 1001 && field <= 1008;
}

void clear_engine();
DcgmReturn add_group(std::uintptr_t* out);
DcgmReturn add_to_group(std::uintptr_t group, unsigned int gpu);
DcgmReturn add_fields(const unsigned short* fields, int count, const char* name,
                      std::uintptr_t* out);
DcgmReturn watch(std::uintptr_t group, std::uintptr_t fields);
bool is_watched(unsigned int gpu, unsigned short field);

}  // namespace gpu_emulator
