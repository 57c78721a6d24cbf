#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

// What the burn-in runs on GPUs, and the same on this CPU. The driver compiles the text for the
// GPU.

namespace gpu_platform::node {

// A word of a pattern in memory.
inline std::uint32_t pattern_word(std::uint32_t index, std::uint32_t seed) {
  return (index * 2654435761U) ^ seed;
}

inline constexpr std::uint32_t kLanes = 64;  // threads that have the same low bits compute the same

// What a thread of `work` computes: multiplications and additions of integers and of floats, which
// IEEE 754 leaves one result.
inline std::uint32_t work_result(std::uint32_t lane, std::uint32_t rounds) {
  std::uint32_t number = lane;
  float sum = 0;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    number = number * 1664525U + 1013904223U;
    sum = std::fmaf(sum, 0.5F, static_cast<float>(number >> 8) * 0x1p-24F);
  }
  std::uint32_t bits = 0;
  std::memcpy(&bits, &sum, sizeof bits);
  return bits ^ number;
}

// fill(words, count, seed) writes the pattern, compare(words, count, seed, faults) counts the words
// that are not of it, work(expected, rounds, faults) the threads that compute something else.
inline constexpr const char* kKernels = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry fill(.param .u64 words, .param .u32 count, .param .u32 seed)
{
  .reg .pred %p;
  .reg .b32 %r<9>;
  .reg .b64 %a<4>;
  ld.param.u64 %a1, [words];
  ld.param.u32 %r1, [count];
  ld.param.u32 %r2, [seed];
  cvta.to.global.u64 %a1, %a1;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r6, %r3, %r4, %r5;
  mov.u32 %r7, %nctaid.x;
  mul.lo.u32 %r7, %r7, %r4;
fill_next:
  setp.ge.u32 %p, %r6, %r1;
  @%p bra fill_done;
  mul.lo.u32 %r8, %r6, 2654435761;
  xor.b32 %r8, %r8, %r2;
  mul.wide.u32 %a2, %r6, 4;
  add.u64 %a3, %a1, %a2;
  st.global.u32 [%a3], %r8;
  add.u32 %r6, %r6, %r7;
  bra fill_next;
fill_done:
  ret;
}
.visible .entry compare(.param .u64 words, .param .u32 count, .param .u32 seed, .param .u64 faults)
{
  .reg .pred %p;
  .reg .b32 %r<11>;
  .reg .b64 %a<5>;
  ld.param.u64 %a1, [words];
  ld.param.u32 %r1, [count];
  ld.param.u32 %r2, [seed];
  ld.param.u64 %a4, [faults];
  cvta.to.global.u64 %a1, %a1;
  cvta.to.global.u64 %a4, %a4;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r6, %r3, %r4, %r5;
  mov.u32 %r7, %nctaid.x;
  mul.lo.u32 %r7, %r7, %r4;
compare_next:
  setp.ge.u32 %p, %r6, %r1;
  @%p bra compare_done;
  mul.lo.u32 %r8, %r6, 2654435761;
  xor.b32 %r8, %r8, %r2;
  mul.wide.u32 %a2, %r6, 4;
  add.u64 %a3, %a1, %a2;
  ld.global.u32 %r9, [%a3];
  add.u32 %r6, %r6, %r7;
  setp.eq.u32 %p, %r8, %r9;
  @%p bra compare_next;
  atom.global.add.u32 %r10, [%a4], 1;
  bra compare_next;
compare_done:
  ret;
}
.visible .entry work(.param .u64 expected, .param .u32 rounds, .param .u64 faults)
{
  .reg .pred %p;
  .reg .b32 %r<11>;
  .reg .f32 %f<4>;
  .reg .b64 %a<5>;
  ld.param.u64 %a1, [expected];
  ld.param.u32 %r1, [rounds];
  ld.param.u64 %a4, [faults];
  cvta.to.global.u64 %a1, %a1;
  cvta.to.global.u64 %a4, %a4;
  mov.u32 %r2, %tid.x;
  and.b32 %r3, %r2, 63;
  mov.u32 %r4, %r3;
  mov.f32 %f1, 0f00000000;
work_next:
  setp.eq.u32 %p, %r1, 0;
  @%p bra work_done;
  mul.lo.u32 %r4, %r4, 1664525;
  add.u32 %r4, %r4, 1013904223;
  shr.u32 %r5, %r4, 8;
  cvt.rn.f32.u32 %f2, %r5;
  mul.rn.f32 %f3, %f2, 0f33800000;
  fma.rn.f32 %f1, %f1, 0f3F000000, %f3;
  sub.u32 %r1, %r1, 1;
  bra work_next;
work_done:
  mov.b32 %r6, %f1;
  xor.b32 %r7, %r6, %r4;
  mul.wide.u32 %a2, %r3, 4;
  add.u64 %a3, %a1, %a2;
  ld.global.u32 %r8, [%a3];
  setp.eq.u32 %p, %r7, %r8;
  @%p bra work_same;
  atom.global.add.u32 %r9, [%a4], 1;
work_same:
  ret;
}
)";

}  // namespace gpu_platform::node
