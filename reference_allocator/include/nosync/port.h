// One kernel body for two compilers: nvcc launches it on a grid, g++ runs the same grid in loops.
//
// A body is `template <..> PORT_FN void body(const Ctx&, const Params&)`. All arithmetic that must agree bit for
// bit goes through the functions here: none of them can be contracted or replaced by an approximation.
// Nothing in this file allocates, launches or waits.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#ifdef __CUDACC__
#define PORT_FN __host__ __device__ __forceinline__
#else
#define PORT_FN inline
#endif

namespace nosync {

// The place of a thread. 64-bit, so that offsets made from it are 64-bit too.
struct Ctx {
  int64_t bx;
  int64_t by;
  int64_t tx;
  int64_t bdx;
};

// A bfloat16 as it lies in memory.
struct bf16_t {
  uint16_t bits;
};

// Sixteen bytes: eight channels, in registers.
struct Vec16 {
  uint32_t word[4];
};

inline constexpr int64_t PAD_SLOT = -1;   // a lane without a request
inline constexpr int32_t BAD_INDEX = 128; // bit of the error word: an id lies outside its table

template <class To, class From>
PORT_FN To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To result;
  memcpy(&result, &value, sizeof(result));
  return result;
}

PORT_FN float fused_mul_add(float a, float b, float c) { return fmaf(a, b, c); }

PORT_FN float mul(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);  // never contracted, whatever -fmad says
#else
  return a * b;
#endif
}

PORT_FN float add(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

PORT_FN float divide(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}

PORT_FN float square_root(float a) {
#ifdef __CUDA_ARCH__
  return __fsqrt_rn(a);
#else
  return std::sqrt(a);
#endif
}

PORT_FN float low_half(uint32_t word) { return bits_as<float>(word << 16); }
PORT_FN float high_half(uint32_t word) { return bits_as<float>(word & 0xffff0000u); }
PORT_FN float widen(bf16_t value) { return bits_as<float>(static_cast<uint32_t>(value.bits) << 16); }

// Round to nearest even. Every NaN becomes 0x7fc0: payloads differ between implementations, so none is kept.
PORT_FN uint32_t bf16_bits(float value) {
  const uint32_t bits = bits_as<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

PORT_FN uint32_t pack_halves(float low, float high) { return bf16_bits(low) | (bf16_bits(high) << 16); }

// Two channels with one 32-bit access; `at` is 4-byte aligned.
PORT_FN uint32_t load_word(const bf16_t* at) {
#ifdef __CUDA_ARCH__
  return *reinterpret_cast<const uint32_t*>(at);
#else
  uint32_t word;
  memcpy(&word, at, sizeof(word));
  return word;
#endif
}

PORT_FN void store_word(bf16_t* at, uint32_t word) {
#ifdef __CUDA_ARCH__
  *reinterpret_cast<uint32_t*>(at) = word;
#else
  memcpy(at, &word, sizeof(word));
#endif
}

// Eight channels with one 16-byte access; `at` is 16-byte aligned. Plain C++ vector stores are split by nvcc when
// they are sunk into branches, so the instruction is written out. Volatile keeps loads before later stores. The
// linter reads `at[0]` as an access through the pointer; of inline assembly it sees nothing.
PORT_FN Vec16 load_vec(const bf16_t* at) {
  Vec16 vec;
#ifdef __CUDA_ARCH__
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(vec.word[0]), "=r"(vec.word[1]), "=r"(vec.word[2]), "=r"(vec.word[3])
               : "l"(__cvta_generic_to_global(at)));
#else
  memcpy(&vec, &at[0], sizeof(vec));
#endif
  return vec;
}

PORT_FN void store_vec(bf16_t* at, const Vec16& vec) {
#ifdef __CUDA_ARCH__
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(at)), "r"(vec.word[0]),
               "r"(vec.word[1]), "r"(vec.word[2]), "r"(vec.word[3])
               : "memory");
#else
  memcpy(&at[0], &vec, sizeof(vec));
#endif
}

// Sets a bit of the sticky error word, where the caller gave one. A device assert would poison the context.
PORT_FN void report(int32_t* error_word, int32_t bit) {
  if (error_word == nullptr) return;
#ifdef __CUDA_ARCH__
  atomicOr(error_word, bit);
#else
  *error_word |= bit;
#endif
}

PORT_FN bool inside(int64_t index, int64_t count) { return index >= 0 && index < count; }

// Stores `value` and returns what was there, in one step: of all lanes that do this to a cell, one finds it as it was.
PORT_FN int64_t exchange(int64_t* cell, int64_t value) {
#ifdef __CUDA_ARCH__
  return static_cast<int64_t>(
      atomicExch(reinterpret_cast<unsigned long long*>(cell), static_cast<unsigned long long>(value)));
#else
  const int64_t before = *cell;
  *cell = value;
  return before;
#endif
}

// Lowers a cell to `value` if that is lower.
PORT_FN void lower(int64_t* cell, int64_t value) {
#ifdef __CUDA_ARCH__
  atomicMin(reinterpret_cast<long long*>(cell), static_cast<long long>(value));
#else
  if (value < *cell) *cell = value;
#endif
}

// What is launched: blocks (x, y) of `block` threads.
struct Grid {
  int64_t x;
  int64_t y;
  int64_t block;

  bool empty() const { return x == 0 || y == 0; }
};

// Two channels a thread on x, one row (or sequence) a block on y.
inline Grid word_grid(int64_t channels, int64_t rows) {
  const int64_t words = channels / 2;
  const int64_t block = words >= 128 ? 128 : (words + 31) / 32 * 32;
  return {words == 0 ? 0 : (words + block - 1) / block, rows, block};
}

// One lane a thread, on x; no grid for no lanes.
inline Grid lane_grid(int64_t lanes) {
  if (lanes <= 0) return {0, 0, 0};
  const int64_t block = lanes >= 128 ? 128 : (lanes + 31) / 32 * 32;
  return {(lanes + block - 1) / block, 1, block};
}

#ifdef __CUDACC__
__device__ __forceinline__ Ctx this_thread() {
  return {static_cast<int64_t>(blockIdx.x), static_cast<int64_t>(blockIdx.y), static_cast<int64_t>(threadIdx.x),
          static_cast<int64_t>(blockDim.x)};
}
#endif

// The host's launch of a body without barriers: every thread of every block, one after the other.
template <class Body>
void each_thread(const Grid& grid, Body&& body) {
  for (int64_t by = 0; by < grid.y; ++by) {
    for (int64_t bx = 0; bx < grid.x; ++bx) {
      for (int64_t tx = 0; tx < grid.block; ++tx) body(Ctx{bx, by, tx, grid.block});
    }
  }
}

// A block whose body has barriers. `step` runs one phase for all its threads and then waits for them; `Held` is
// what a thread keeps from phase to phase. On the device a team is one thread, on the host it is the whole block.
template <class Held>
struct Team {
#ifdef __CUDACC__
  Ctx ctx;
  Held held;

  template <class Phase>
  PORT_FN void step(Phase&& phase) {
    phase(ctx, held);
#ifdef __CUDA_ARCH__
    __syncthreads();
#endif
  }
#else
  Ctx ctx;
  std::vector<Held> held;

  Team(int64_t bx, int64_t by, int64_t block) : ctx{bx, by, 0, block}, held(static_cast<size_t>(block)) {}

  template <class Phase>
  void step(Phase&& phase) {
    for (ctx.tx = 0; ctx.tx < ctx.bdx; ++ctx.tx) phase(ctx, held[static_cast<size_t>(ctx.tx)]);
  }
#endif
};

}  // namespace nosync
