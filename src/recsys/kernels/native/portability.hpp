// The few compiler extensions the innermost loops need, with plain fall-backs.
#pragma once

#if defined(__clang__)
#define RECSYS_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define RECSYS_UNROLL _Pragma("GCC unroll 16")
#else
#define RECSYS_UNROLL
#endif

#if defined(__GNUC__)
#define RECSYS_INLINE inline __attribute__((always_inline))
#define RECSYS_NOINLINE __attribute__((noinline))
#define RECSYS_RESTRICT __restrict__
#define RECSYS_PREFETCH(address) __builtin_prefetch(address)
#else
#include <intrin.h>
#define RECSYS_INLINE __forceinline
#define RECSYS_NOINLINE __declspec(noinline)
#define RECSYS_RESTRICT __restrict
#define RECSYS_PREFETCH(address) ((void)(address))
#define __builtin_expect(value, expected) (value)
#define __builtin_popcount __popcnt
static __forceinline int __builtin_ctz(unsigned bits) {
  unsigned long place;
  _BitScanForward(&place, bits);
  return static_cast<int>(place);
}
#endif
