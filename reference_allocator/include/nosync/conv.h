// The short convolution of one token and two channels, in fp32 and in an order that both compilers keep.
#pragma once

#include <nosync/port.h>

namespace nosync {

// Two neighbouring channels.
struct Pair {
  float low;
  float high;
};

// What becomes of a tap sum: SiLU where `silu`, then + x where `add_x`, rounded to bf16 once.
struct Finish {
  bool silu;
  bool add_x;
};

// e**x for finite x, clamped to [-87, 87] so that the scale is a normal number. Range reduction by ln 2 in two parts,
// then the Taylor polynomial of degree 7 on [-ln2/2, ln2/2] (remainder below 6e-9). Explicit fused steps only: `ex2`
// approximations of a device cannot be reproduced on a host.
PORT_FN float exponential(float x) {
  const float bounded = x < -87.0f ? -87.0f : x > 87.0f ? 87.0f : x;
  const float round = 12582912.0f;  // 1.5 * 2**23: adding it leaves the nearest integer in the low bits
  const float shifted = fused_mul_add(bounded, 1.44269504f, round);
  const float n = add(shifted, -round);
  const float high = fused_mul_add(n, -0.693145752f, bounded);  // ln 2 to 16 bits: n times it is exact
  const float r = fused_mul_add(n, -1.42860677e-6f, high);      // the rest of ln 2
  float sum = 1.98412698e-4f;                                   // 1/7!
  sum = fused_mul_add(sum, r, 1.38888889e-3f);
  sum = fused_mul_add(sum, r, 8.33333333e-3f);
  sum = fused_mul_add(sum, r, 4.16666667e-2f);
  sum = fused_mul_add(sum, r, 1.66666667e-1f);
  sum = fused_mul_add(sum, r, 0.5f);
  sum = fused_mul_add(sum, r, 1.0f);
  sum = fused_mul_add(sum, r, 1.0f);
  const uint32_t power = bits_as<uint32_t>(shifted) - bits_as<uint32_t>(round);  // n, two's complement
  return mul(sum, bits_as<float>((power + 127u) << 23));
}

PORT_FN float silu(float x) { return divide(x, add(1.0f, exponential(-x))); }

// The sum of taps, oldest first. `weight` points at the channel's row; the next channel lies `step` further.
// A product of two bf16 values is exact in fp32 unless it underflows, so only the order decides the result.
template <int TAPS>
PORT_FN Pair tap_sum(const uint32_t (&taps)[TAPS], const bf16_t* weight, int64_t step) {
  Pair sum{0.0f, 0.0f};
#pragma unroll
  for (int j = 0; j < TAPS; ++j) {
    sum.low = fused_mul_add(low_half(taps[j]), widen(weight[j]), sum.low);
    sum.high = fused_mul_add(high_half(taps[j]), widen(weight[step + j]), sum.high);
  }
  return sum;
}

PORT_FN uint32_t finished(Pair sum, uint32_t x, Finish finish) {
  if (finish.silu) sum = {silu(sum.low), silu(sum.high)};
  if (finish.add_x) sum = {add(sum.low, low_half(x)), add(sum.high, high_half(x))};
  return pack_halves(sum.low, sum.high);
}

}  // namespace nosync
