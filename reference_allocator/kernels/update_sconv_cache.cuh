// K1: after a prefill, the conv state of each sequence becomes its last W-1 rows. A pure copy.
//
// new state = last W-1 rows of (old state, zero where !has_state) ++ x[start:end], for sequences of length > 0 whose
// slot is not PAD. One 32-bit word (two channels) a thread; the old rows are in registers before the first store.
#pragma once

#include <nosync/operands.hpp>
#include <nosync/port.h>

namespace nosync {

struct UpdateSconvCacheParams {
  const bf16_t* x;
  bf16_t* cache;
  const int32_t* cache_indices;
  const bool* has_state;
  const int32_t* query_start;
  int32_t* error_word;
  int64_t x_step;
  int64_t slot_step;
  int64_t window_step;
  int64_t tokens;
  int64_t slots;
  int64_t channels;
};

template <int HISTORY>
PORT_FN void update_sconv_cache_body(const Ctx& c, const UpdateSconvCacheParams& p) {
  const int64_t channel = 2 * (c.bx * c.bdx + c.tx);
  if (channel >= p.channels) return;
  const int64_t slot = p.cache_indices[c.by];
  const int64_t start = p.query_start[c.by];
  const int64_t length = p.query_start[c.by + 1] - start;
  if (slot == PAD_SLOT || length == 0) return;
  if (!inside(slot, p.slots) || start < 0 || length < 0 || start + length > p.tokens) {
    report(p.error_word, BAD_INDEX);
    return;
  }
  const bool known = p.has_state[c.by];
  bf16_t* state = p.cache + slot * p.slot_step + channel;
  const bf16_t* rows = p.x + start * p.x_step + channel;
  uint32_t window[HISTORY];
#pragma unroll
  for (int w = 0; w < HISTORY; ++w) {
    const int64_t row = length + w;  // in old state ++ rows
    if (row >= HISTORY) {
      window[w] = load_word(rows + (row - HISTORY) * p.x_step);
    } else {
      window[w] = known ? load_word(state + row * p.window_step) : 0u;
    }
  }
#pragma unroll
  for (int w = 0; w < HISTORY; ++w) store_word(state + w * p.window_step, window[w]);
}

#ifdef __CUDACC__
template <int HISTORY>
__global__ void update_sconv_cache_kernel(const __grid_constant__ UpdateSconvCacheParams p) {
  update_sconv_cache_body<HISTORY>(this_thread(), p);
}
#endif

template <int HISTORY>
void launch_update_sconv_cache(const UpdateSconvCacheParams& p, const Grid& grid, void* stream) {
#ifdef __CUDACC__
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y));
  update_sconv_cache_kernel<HISTORY>
      <<<blocks, static_cast<unsigned>(grid.block), 0, static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  each_thread(grid, [&](const Ctx& c) { update_sconv_cache_body<HISTORY>(c, p); });
#endif
}

// x [T,D] bf16 {any,1}; cache [slots,W-1,D] bf16 {any,any,1}; cache_indices i32 [B]; has_state bool [B]; query_start
// i32 [B+1]. Queues one kernel on `stream` and returns. Throws Mismatch. The device form does not block the host.
inline void update_sconv_cache(const TensorView& x, const TensorView& cache, const TensorView& cache_indices,
                               const TensorView& has_state, const TensorView& query_start,
                               const std::optional<TensorView>& error_word, void* stream) {
  Size history = history_size(), channels = Size("D").multiple_of(2), batch("B");
  Device device("device", {BUILT_FOR});
  Match(cache, "cache")
      .shape({any, history, channels})
      .strides({any, any, 1})
      .dtype({BF16})
      .device(device)
      .align(4)
      .no_self_overlap()
      .disjoint_from(x, "x")
      .verify();
  Match(x, "x").shape({any, channels}).strides({any, 1}).dtype({BF16}).device(device).align(4).verify();
  Match(cache_indices, "cache_indices")
      .shape({batch})
      .dtype({I32})
      .device(device)
      .align(4)
      .range_u16_grid(0)
      .verify();
  Match(has_state, "has_state").shape({batch}).dtype({BOOL}).device(device).verify();
  Size bounds("B+1", batch.value() + 1);
  Match(query_start, "query_start").shape({bounds}).dtype({I32}).device(device).align(4).verify();

  UpdateSconvCacheParams p{};
  p.x = static_cast<const bf16_t*>(x.data_ptr());
  p.cache = static_cast<bf16_t*>(cache.data_ptr());
  p.cache_indices = static_cast<const int32_t*>(cache_indices.data_ptr());
  p.has_state = static_cast<const bool*>(has_state.data_ptr());
  p.query_start = static_cast<const int32_t*>(query_start.data_ptr());
  p.error_word = match_error_word(error_word, device);
  p.x_step = x.stride(0);
  p.slot_step = cache.stride(0);
  p.window_step = cache.stride(1);
  p.tokens = x.size(0);
  p.slots = cache.size(0);
  p.channels = channels.value();

  const Grid grid = word_grid(p.channels, batch.value());
  if (grid.empty()) return;
  switch (history.value()) {
    case 1: return launch_update_sconv_cache<1>(p, grid, stream);
    case 2: return launch_update_sconv_cache<2>(p, grid, stream);
    case 3: return launch_update_sconv_cache<3>(p, grid, stream);
    case 4: return launch_update_sconv_cache<4>(p, grid, stream);
  }
}

}  // namespace nosync
