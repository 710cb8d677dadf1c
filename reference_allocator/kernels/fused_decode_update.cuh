// K4: one decode step: the convolution of one token per row, then its conv state moves on by that token.
//
// y = act(sum of taps times weights) (+ x); the state shifts left and takes x as its last row. Where `mask` is false
// the old state counts as zero. The new state also goes to `track_slot` where `track_mask`. PAD rows write y, and no
// state. One 32-bit word a thread; the old rows are in registers before the first store, so y may be x.
#pragma once

#include <nosync/conv.h>
#include <nosync/operands.hpp>
#include <nosync/port.h>

namespace nosync {

struct FusedDecodeUpdateParams {
  const bf16_t* x;
  bf16_t* cache;
  const int32_t* cache_indices;
  const bool* mask;
  const bf16_t* weight;
  bf16_t* y;
  const bool* track_mask;
  const int64_t* track_slot;
  int32_t* error_word;
  int64_t x_step;
  int64_t slot_step;
  int64_t window_step;
  int64_t weight_step;
  int64_t y_step;
  int64_t slots;
  int64_t channels;
  Finish finish;
};

template <int HISTORY>
PORT_FN void fused_decode_update_body(const Ctx& c, const FusedDecodeUpdateParams& p) {
  const int64_t channel = 2 * (c.bx * c.bdx + c.tx);
  if (channel >= p.channels) return;
  const int64_t slot = p.cache_indices[c.by];
  const bool live = slot != PAD_SLOT;
  const bool tracked = live && p.track_mask != nullptr && p.track_mask[c.by] && p.track_slot[c.by] != PAD_SLOT;
  const int64_t track_slot = tracked ? p.track_slot[c.by] : slot;
  if (live && (!inside(slot, p.slots) || !inside(track_slot, p.slots))) {
    report(p.error_word, BAD_INDEX);
    return;
  }
  const bool known = live && p.mask[c.by];
  bf16_t* state = p.cache + (live ? slot : 0) * p.slot_step + channel;
  uint32_t taps[HISTORY + 1];
#pragma unroll
  for (int w = 0; w < HISTORY; ++w) taps[w] = known ? load_word(state + w * p.window_step) : 0u;
  taps[HISTORY] = load_word(p.x + c.by * p.x_step + channel);
  const Pair sum = tap_sum(taps, p.weight + channel * p.weight_step, p.weight_step);
  store_word(p.y + c.by * p.y_step + channel, finished(sum, taps[HISTORY], p.finish));
  if (!live) return;
#pragma unroll
  for (int w = 0; w < HISTORY; ++w) store_word(state + w * p.window_step, taps[w + 1]);
  if (!tracked) return;
  bf16_t* kept = p.cache + track_slot * p.slot_step + channel;
#pragma unroll
  for (int w = 0; w < HISTORY; ++w) store_word(kept + w * p.window_step, taps[w + 1]);
}

#ifdef __CUDACC__
template <int HISTORY>
__global__ void fused_decode_update_kernel(const __grid_constant__ FusedDecodeUpdateParams p) {
  fused_decode_update_body<HISTORY>(this_thread(), p);
}
#endif

template <int HISTORY>
void launch_fused_decode_update(const FusedDecodeUpdateParams& p, const Grid& grid, void* stream) {
#ifdef __CUDACC__
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y));
  fused_decode_update_kernel<HISTORY>
      <<<blocks, static_cast<unsigned>(grid.block), 0, static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  each_thread(grid, [&](const Ctx& c) { fused_decode_update_body<HISTORY>(c, p); });
#endif
}

// x, y [T,D] bf16 {any,1}, y may be x; cache [slots,W-1,D] bf16 {any,any,1}; cache_indices i32 [T]; mask bool [T];
// weight [D,W] bf16 {any,1}; track_mask bool [T] and track_slot i64 [T] together or not at all. Queues one kernel on
// `stream` and returns. Throws Mismatch. The device form does not block the host.
inline void fused_decode_update(const TensorView& x, const TensorView& cache, const TensorView& cache_indices,
                                const TensorView& mask, const TensorView& weight, const TensorView& y, Finish finish,
                                const std::optional<TensorView>& track_mask,
                                const std::optional<TensorView>& track_slot,
                                const std::optional<TensorView>& error_word, void* stream) {
  Size history = history_size(), channels = Size("D").multiple_of(2), tokens("T");
  Device device("device", {BUILT_FOR});
  Match(cache, "cache")
      .shape({any, history, channels})
      .strides({any, any, 1})
      .dtype({BF16})
      .device(device)
      .align(4)
      .no_self_overlap()
      .disjoint_from(x, "x")
      .disjoint_from(weight, "weight")
      .verify();
  Match(x, "x")
      .shape({tokens, channels})
      .strides({any, 1})
      .dtype({BF16})
      .device(device)
      .align(4)
      .range_u16_grid(0)
      .verify();
  Size width("W", history.value() + 1);
  Match(weight, "weight").shape({channels, width}).strides({any, 1}).dtype({BF16}).device(device).align(2).verify();
  Match(cache_indices, "cache_indices").shape({tokens}).dtype({I32}).device(device).align(4).verify();
  Match(mask, "mask").shape({tokens}).dtype({BOOL}).device(device).verify();
  Match(y, "y")
      .shape({tokens, channels})
      .strides({any, 1})
      .dtype({BF16})
      .device(device)
      .align(4)
      .no_self_overlap()
      .same_or_disjoint_from(x, "x")
      .disjoint_from(cache, "cache")
      .disjoint_from(weight, "weight")
      .verify();

  FusedDecodeUpdateParams p{};
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
  p.x = static_cast<const bf16_t*>(x.data_ptr());
  p.cache = static_cast<bf16_t*>(cache.data_ptr());
  p.cache_indices = static_cast<const int32_t*>(cache_indices.data_ptr());
  p.mask = static_cast<const bool*>(mask.data_ptr());
  p.weight = static_cast<const bf16_t*>(weight.data_ptr());
  p.y = static_cast<bf16_t*>(y.data_ptr());
  p.error_word = match_error_word(error_word, device);
  p.x_step = x.stride(0);
  p.slot_step = cache.stride(0);
  p.window_step = cache.stride(1);
  p.weight_step = weight.stride(0);
  p.y_step = y.stride(0);
  p.slots = cache.size(0);
  p.channels = channels.value();
  p.finish = finish;

  const Grid grid = word_grid(p.channels, tokens.value());
  if (grid.empty()) return;
  switch (history.value()) {
    case 1: return launch_fused_decode_update<1>(p, grid, stream);
    case 2: return launch_fused_decode_update<2>(p, grid, stream);
    case 3: return launch_fused_decode_update<3>(p, grid, stream);
    case 4: return launch_fused_decode_update<4>(p, grid, stream);
  }
}

}  // namespace nosync
