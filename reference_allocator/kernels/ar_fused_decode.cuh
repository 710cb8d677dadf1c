// K6: sum of partial sums, decode convolution, residual and RMS norm in one launch; and its verify variant.
//
// x = bf16(fp32 sum of the shards, rank by rank); y = bf16(act(sum of taps times weights) (+ x)); r = y + residual in
// fp32; residual_out = bf16(r); hs_out = bf16(r / sqrt(mean(r * r) + eps) * norm_weight). Decode then moves the conv
// state on by x, and copies it to `track_slot` where `track_mask`. Verify has q tokens a sequence, only reads the
// state and writes the state after each token to `inter_out`. Where `mask` is false the state counts as zero; PAD rows
// write their outputs, and no state.
//
// One block a token, eight channels (16 bytes) a thread. The order of the block's sum is fixed: the thread's own eight
// squares, a tree over 32 lanes (16, 8, 4, 2, 1), then the same tree over up to 32 warps.
#pragma once

#include <nosync/conv.h>
#include <nosync/port.h>
#include <nosync/reduction.hpp>

namespace nosync {

struct ArFusedParams {
  const bf16_t* shards;
  bf16_t* cache;
  const int32_t* cache_indices;
  const bool* mask;
  const bf16_t* weight;
  const bf16_t* residual;
  const bf16_t* norm_weight;
  bf16_t* residual_out;
  bf16_t* hs_out;
  bf16_t* inter_out;
  const bool* track_mask;
  const int64_t* track_slot;
  int32_t* error_word;
  int64_t rank_step;
  int64_t shard_step;
  int64_t slot_step;
  int64_t window_step;
  int64_t weight_step;
  int64_t residual_step;
  int64_t residual_out_step;
  int64_t hs_step;
  int64_t inter_sequence_step;
  int64_t inter_token_step;
  int64_t inter_window_step;
  int64_t ranks;
  int64_t slots;
  int64_t channels;
  int64_t sequence_tokens;
  Finish finish;
  float eps;
};

// What a thread keeps across the barriers: r of its eight channels.
struct ArHeld {
  float row[8];
};

inline constexpr int64_t LARGEST_BLOCK = WIDEST_ROW / 8;

// Eight channels of one token, summed over the ranks in ascending order and rounded to bf16.
PORT_FN Vec16 reduced(const ArFusedParams& p, int64_t token, int64_t channel) {
  float sum[8] = {};
  for (int64_t rank = 0; rank < p.ranks; ++rank) {
    const Vec16 part = load_vec(p.shards + rank * p.rank_step + token * p.shard_step + channel);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sum[2 * i] = add(sum[2 * i], low_half(part.word[i]));
      sum[2 * i + 1] = add(sum[2 * i + 1], high_half(part.word[i]));
    }
  }
  Vec16 x;
#pragma unroll
  for (int i = 0; i < 4; ++i) x.word[i] = pack_halves(sum[2 * i], sum[2 * i + 1]);
  return x;
}

template <int HISTORY>
PORT_FN void store_window(bf16_t* at, int64_t window_step, const uint32_t (&taps)[4][HISTORY + 1]) {
#pragma unroll
  for (int w = 0; w < HISTORY; ++w) {
    store_vec(at + w * window_step, {{taps[0][w + 1], taps[1][w + 1], taps[2][w + 1], taps[3][w + 1]}});
  }
}

// Everything up to the norm, for one thread. Returns the sum of its squares.
template <int HISTORY, bool VERIFY>
PORT_FN float ar_fused_row(const Ctx& c, const ArFusedParams& p, ArHeld& held) {
  const int64_t channel = 8 * c.tx;
  if (channel >= p.channels) return 0.0f;
  const int64_t sequence = VERIFY ? c.by / p.sequence_tokens : c.by;
  const int64_t position = VERIFY ? c.by % p.sequence_tokens : 0;
  const int64_t slot = p.cache_indices[sequence];
  const bool tracked = !VERIFY && slot != PAD_SLOT && p.track_mask != nullptr && p.track_mask[sequence] &&
                       p.track_slot[sequence] != PAD_SLOT;
  const int64_t track_slot = tracked ? p.track_slot[sequence] : slot;
  const bool live = inside(slot, p.slots) && inside(track_slot, p.slots);
  if (!live && slot != PAD_SLOT) report(p.error_word, BAD_INDEX);
  const bool known = live && p.mask[sequence];

  bf16_t* state = p.cache + (live ? slot : 0) * p.slot_step + channel;
  uint32_t taps[4][HISTORY + 1];
#pragma unroll
  for (int j = 0; j <= HISTORY; ++j) {
    const int64_t row = position + j;  // in old state ++ rows of the sequence
    Vec16 tap{};
    if (row >= HISTORY) {
      tap = reduced(p, c.by + j - HISTORY, channel);
    } else if (known) {
      tap = load_vec(state + row * p.window_step);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) taps[i][j] = tap.word[i];
  }

  const Vec16 residual = load_vec(p.residual + c.by * p.residual_step + channel);
  Vec16 residual_out;
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const bf16_t* weight = p.weight + (channel + 2 * i) * p.weight_step;
    const uint32_t y = finished(tap_sum(taps[i], weight, p.weight_step), taps[i][HISTORY], p.finish);
    const float low = add(low_half(y), low_half(residual.word[i]));
    const float high = add(high_half(y), high_half(residual.word[i]));
    residual_out.word[i] = pack_halves(low, high);
    squares = add(add(squares, mul(low, low)), mul(high, high));
    held.row[2 * i] = low;
    held.row[2 * i + 1] = high;
  }
  store_vec(p.residual_out + c.by * p.residual_out_step + channel, residual_out);
  if (!live) return squares;
  if (VERIFY) {
    bf16_t* window = p.inter_out + sequence * p.inter_sequence_step + position * p.inter_token_step + channel;
    store_window<HISTORY>(window, p.inter_window_step, taps);
  } else {
    store_window<HISTORY>(state, p.window_step, taps);
    if (tracked) store_window<HISTORY>(p.cache + track_slot * p.slot_step + channel, p.window_step, taps);
  }
  return squares;
}

PORT_FN void ar_fused_norm(const Ctx& c, const ArFusedParams& p, const ArHeld& held, float squares) {
  const int64_t channel = 8 * c.tx;
  if (channel >= p.channels) return;
  const float mean = divide(squares, static_cast<float>(p.channels));
  const float scale = divide(1.0f, square_root(add(mean, p.eps)));
  const Vec16 weight = load_vec(p.norm_weight + channel);
  Vec16 hs;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    hs.word[i] = pack_halves(mul(mul(held.row[2 * i], scale), low_half(weight.word[i])),
                             mul(mul(held.row[2 * i + 1], scale), high_half(weight.word[i])));
  }
  store_vec(p.hs_out + c.by * p.hs_step + channel, hs);
}

// `partial` is shared by the block and holds LARGEST_BLOCK floats.
template <int HISTORY, bool VERIFY>
PORT_FN void ar_fused_body(Team<ArHeld>& team, float* partial, const ArFusedParams& p) {
  team.step([&](const Ctx& c, ArHeld& held) { partial[c.tx] = ar_fused_row<HISTORY, VERIFY>(c, p, held); });
  for (int reach = 16; reach > 0; reach /= 2) {
    team.step([&](const Ctx& c, ArHeld&) {
      if (c.tx % 32 < reach) partial[c.tx] = add(partial[c.tx], partial[c.tx + reach]);
    });
  }
  for (int reach = 16; reach > 0; reach /= 2) {
    team.step([&](const Ctx& c, ArHeld&) {
      const int64_t other = c.tx + 32 * reach;  // the first lane of the other warp
      if (c.tx % 32 == 0 && c.tx < 32 * reach && other < c.bdx) partial[c.tx] = add(partial[c.tx], partial[other]);
    });
  }
  team.step([&](const Ctx& c, ArHeld& held) { ar_fused_norm(c, p, held, partial[0]); });
}

#ifdef __CUDACC__
template <int HISTORY, bool VERIFY>
__global__ void __launch_bounds__(LARGEST_BLOCK) ar_fused_kernel(const __grid_constant__ ArFusedParams p) {
  __shared__ float partial[LARGEST_BLOCK];
  Team<ArHeld> team{this_thread(), {}};
  ar_fused_body<HISTORY, VERIFY>(team, partial, p);
}
#endif

template <int HISTORY, bool VERIFY>
void launch_ar_fused(const ArFusedParams& p, int64_t tokens, void* stream) {
  const int64_t block = (p.channels / 8 + 31) / 32 * 32;
#ifdef __CUDACC__
  const dim3 blocks(1, static_cast<unsigned>(tokens));
  ar_fused_kernel<HISTORY, VERIFY>
      <<<blocks, static_cast<unsigned>(block), 0, static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  std::vector<float> partial(LARGEST_BLOCK);
  for (int64_t token = 0; token < tokens; ++token) {
    Team<ArHeld> team(0, token, block);
    ar_fused_body<HISTORY, VERIFY>(team, partial.data(), p);
  }
#endif
}

template <bool VERIFY>
void dispatch_ar_fused(const ArFusedParams& p, int64_t history, int64_t tokens, void* stream) {
  if (tokens == 0 || p.channels == 0) return;
  switch (history) {
    case 1: return launch_ar_fused<1, VERIFY>(p, tokens, stream);
    case 2: return launch_ar_fused<2, VERIFY>(p, tokens, stream);
    case 3: return launch_ar_fused<3, VERIFY>(p, tokens, stream);
    case 4: return launch_ar_fused<4, VERIFY>(p, tokens, stream);
  }
}

// shards [R,T,D] bf16 {any,any,1}; cache [slots,W-1,D] bf16 {any,any,1}; cache_indices i32 [T]; mask bool [T]; weight
// [D,W] bf16 {any,1}; residual, residual_out, hs_out [T,D] bf16 {any,1}, residual_out may be residual; norm_weight
// bf16 [D]; track_mask bool [T] and track_slot i64 [T] together or not at all. D is a multiple of 8 up to 8192, rows
// start on 16 bytes. Queues one kernel on `stream` and returns. Throws Mismatch. The device form does not block.
inline void ar_fused_decode(const TensorView& shards, const TensorView& cache, const TensorView& cache_indices,
                            const TensorView& mask, const TensorView& weight, const TensorView& residual,
                            const TensorView& norm_weight, const TensorView& residual_out, const TensorView& hs_out,
                            float eps, Finish finish, const std::optional<TensorView>& track_mask,
                            const std::optional<TensorView>& track_slot, const std::optional<TensorView>& error_word,
                            void* stream) {
  Size history = history_size(), channels = vector_channels(), tokens("T");
  Device device("device", {BUILT_FOR});
  Match(cache, "cache")
      .shape({any, history, channels})
      .strides({any, any, 1})
      .dtype({BF16})
      .device(device)
      .align(16)
      .no_self_overlap()
      .disjoint_from(shards, "shards")
      .disjoint_from(weight, "weight")
      .disjoint_from(residual, "residual")
      .disjoint_from(norm_weight, "norm_weight")
      .disjoint_from(residual_out, "residual_out")
      .disjoint_from(hs_out, "hs_out")
      .verify();
  Size width("W", history.value() + 1);
  match_reduction(shards, weight, residual, norm_weight, residual_out, hs_out, tokens, channels, width, device);
  Match(cache_indices, "cache_indices").shape({tokens}).dtype({I32}).device(device).align(4).verify();
  Match(mask, "mask").shape({tokens}).dtype({BOOL}).device(device).verify();

  ArFusedParams p{};
  if (track_mask.has_value()) {
    const TensorView& tracked = track_mask.value();
    Match(tracked, "track_mask").shape({tokens}).dtype({BOOL}).device(device).verify();
    p.track_mask = static_cast<const bool*>(tracked.data_ptr());
  }
  if (track_slot.has_value()) {
    const TensorView& kept = track_slot.value();
    Match(kept, "track_slot").shape({tokens}).dtype({I64}).device(device).align(8).verify();
    p.track_slot = static_cast<const int64_t*>(kept.data_ptr());
  }
  demand_together("track_mask and track_slot", track_mask.has_value() + track_slot.has_value(), 2);
  p.shards = static_cast<const bf16_t*>(shards.data_ptr());
  p.cache = static_cast<bf16_t*>(cache.data_ptr());
  p.cache_indices = static_cast<const int32_t*>(cache_indices.data_ptr());
  p.mask = static_cast<const bool*>(mask.data_ptr());
  p.weight = static_cast<const bf16_t*>(weight.data_ptr());
  p.residual = static_cast<const bf16_t*>(residual.data_ptr());
  p.norm_weight = static_cast<const bf16_t*>(norm_weight.data_ptr());
  p.residual_out = static_cast<bf16_t*>(residual_out.data_ptr());
  p.hs_out = static_cast<bf16_t*>(hs_out.data_ptr());
  p.error_word = match_error_word(error_word, device);
  p.rank_step = shards.stride(0);
  p.shard_step = shards.stride(1);
  p.slot_step = cache.stride(0);
  p.window_step = cache.stride(1);
  p.weight_step = weight.stride(0);
  p.residual_step = residual.stride(0);
  p.residual_out_step = residual_out.stride(0);
  p.hs_step = hs_out.stride(0);
  p.ranks = shards.size(0);
  p.slots = cache.size(0);
  p.channels = channels.value();
  p.sequence_tokens = 1;
  p.finish = finish;
  p.eps = eps;
  dispatch_ar_fused<false>(p, history.value(), tokens.value(), stream);
}

// The same for q tokens a sequence: cache_indices i32 [B] and mask bool [B], T = B*q; the state is only read.
// inter_out [at least B,q,W-1,D] bf16 {any,any,any,1}: [b,i] is the state after token i; the rows of PAD sequences
// stay as they are. Queues one kernel on `stream` and returns. Throws Mismatch. The device form does not block.
inline void ar_fused_verify(const TensorView& shards, const TensorView& cache, const TensorView& cache_indices,
                            const TensorView& mask, const TensorView& weight, const TensorView& residual,
                            const TensorView& norm_weight, const TensorView& residual_out, const TensorView& hs_out,
                            const TensorView& inter_out, float eps, Finish finish,
                            const std::optional<TensorView>& error_word, void* stream) {
  Size history = history_size(), channels = vector_channels(), batch("B");
  Device device("device", {BUILT_FOR});
  Match(cache, "cache")
      .shape({any, history, channels})
      .strides({any, any, 1})
      .dtype({BF16})
      .device(device)
      .align(16)
      .no_self_overlap()
      .disjoint_from(residual_out, "residual_out")
      .disjoint_from(hs_out, "hs_out")
      .disjoint_from(inter_out, "inter_out")
      .verify();
  Match(cache_indices, "cache_indices").shape({batch}).dtype({I32}).device(device).align(4).verify();
  Match(mask, "mask").shape({batch}).dtype({BOOL}).device(device).verify();
  Size sequences = Size("max_bs").between(batch.value(), std::numeric_limits<int64_t>::max()), drafted("q");
  Match(inter_out, "inter_out")
      .shape({sequences, drafted, history, channels})
      .strides({any, any, any, 1})
      .dtype({BF16})
      .device(device)
      .align(16)
      .no_self_overlap()
      .disjoint_from(shards, "shards")
      .disjoint_from(weight, "weight")
      .disjoint_from(residual, "residual")
      .disjoint_from(norm_weight, "norm_weight")
      .disjoint_from(residual_out, "residual_out")
      .disjoint_from(hs_out, "hs_out")
      .verify();
  Size tokens("B*q", batch.value() * drafted.value()), width("W", history.value() + 1);
  match_reduction(shards, weight, residual, norm_weight, residual_out, hs_out, tokens, channels, width, device);

  ArFusedParams p{};
  p.shards = static_cast<const bf16_t*>(shards.data_ptr());
  p.cache = static_cast<bf16_t*>(cache.data_ptr());
  p.cache_indices = static_cast<const int32_t*>(cache_indices.data_ptr());
  p.mask = static_cast<const bool*>(mask.data_ptr());
  p.weight = static_cast<const bf16_t*>(weight.data_ptr());
  p.residual = static_cast<const bf16_t*>(residual.data_ptr());
  p.norm_weight = static_cast<const bf16_t*>(norm_weight.data_ptr());
  p.residual_out = static_cast<bf16_t*>(residual_out.data_ptr());
  p.hs_out = static_cast<bf16_t*>(hs_out.data_ptr());
  p.inter_out = static_cast<bf16_t*>(inter_out.data_ptr());
  p.error_word = match_error_word(error_word, device);
  p.rank_step = shards.stride(0);
  p.shard_step = shards.stride(1);
  p.slot_step = cache.stride(0);
  p.window_step = cache.stride(1);
  p.weight_step = weight.stride(0);
  p.residual_step = residual.stride(0);
  p.residual_out_step = residual_out.stride(0);
  p.hs_step = hs_out.stride(0);
  p.inter_sequence_step = inter_out.stride(0);
  p.inter_token_step = inter_out.stride(1);
  p.inter_window_step = inter_out.stride(2);
  p.ranks = shards.size(0);
  p.slots = cache.size(0);
  p.channels = channels.value();
  p.sequence_tokens = drafted.value();
  p.finish = finish;
  p.eps = eps;
  dispatch_ar_fused<true>(p, history.value(), tokens.value(), stream);
}

}  // namespace nosync
