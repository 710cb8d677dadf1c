// K5: chosen rows of the hidden states become conv states. A pure copy.
//
// where mask[b] and dst[b] is not PAD: cache[dst[b], w] = hidden[rows[b, w]]. One 32-bit word a thread.
#pragma once

#include <nosync/operands.hpp>
#include <nosync/port.h>

namespace nosync {

struct GatherScatterSconvParams {
  const bf16_t* hidden;
  bf16_t* cache;
  const int32_t* rows;
  const bool* mask;
  const int64_t* dst;
  int32_t* error_word;
  int64_t hidden_step;
  int64_t slot_step;
  int64_t window_step;
  int64_t rows_step;
  int64_t tokens;
  int64_t slots;
  int64_t channels;
};

template <int HISTORY>
PORT_FN void gather_scatter_sconv_body(const Ctx& c, const GatherScatterSconvParams& p) {
  const int64_t channel = 2 * (c.bx * c.bdx + c.tx);
  if (channel >= p.channels || !p.mask[c.by]) return;
  const int64_t slot = p.dst[c.by];
  if (slot == PAD_SLOT) return;
  bool legal = inside(slot, p.slots);
#pragma unroll
  for (int w = 0; w < HISTORY; ++w) legal = legal && inside(p.rows[c.by * p.rows_step + w], p.tokens);
  if (!legal) {
    report(p.error_word, BAD_INDEX);
    return;
  }
  uint32_t window[HISTORY];
#pragma unroll
  for (int w = 0; w < HISTORY; ++w) {
    const int64_t row = p.rows[c.by * p.rows_step + w];
    window[w] = load_word(p.hidden + row * p.hidden_step + channel);
  }
  bf16_t* state = p.cache + slot * p.slot_step + channel;
#pragma unroll
  for (int w = 0; w < HISTORY; ++w) store_word(state + w * p.window_step, window[w]);
}

#ifdef __CUDACC__
template <int HISTORY>
__global__ void gather_scatter_sconv_kernel(const __grid_constant__ GatherScatterSconvParams p) {
  gather_scatter_sconv_body<HISTORY>(this_thread(), p);
}
#endif

template <int HISTORY>
void launch_gather_scatter_sconv(const GatherScatterSconvParams& p, const Grid& grid, void* stream) {
#ifdef __CUDACC__
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y));
  gather_scatter_sconv_kernel<HISTORY>
      <<<blocks, static_cast<unsigned>(grid.block), 0, static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  each_thread(grid, [&](const Ctx& c) { gather_scatter_sconv_body<HISTORY>(c, p); });
#endif
}

// hidden [T,D] bf16 {any,1}; cache [slots,W-1,D] bf16 {any,any,1}; rows i32 [B,W-1] {any,1}; mask bool [B]; dst i64
// [B]. Queues one kernel on `stream` and returns. Throws Mismatch. The device form does not block the host.
inline void gather_scatter_sconv(const TensorView& hidden, const TensorView& cache, const TensorView& rows,
                                 const TensorView& mask, const TensorView& dst,
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
      .disjoint_from(hidden, "hidden")
      .verify();
  Match(hidden, "hidden").shape({any, channels}).strides({any, 1}).dtype({BF16}).device(device).align(4).verify();
  Match(rows, "rows")
      .shape({batch, history})
      .strides({any, 1})
      .dtype({I32})
      .device(device)
      .align(4)
      .range_u16_grid(0)
      .verify();
  Match(mask, "mask").shape({batch}).dtype({BOOL}).device(device).verify();
  Match(dst, "dst").shape({batch}).dtype({I64}).device(device).align(8).verify();

  GatherScatterSconvParams p{};
  p.hidden = static_cast<const bf16_t*>(hidden.data_ptr());
  p.cache = static_cast<bf16_t*>(cache.data_ptr());
  p.rows = static_cast<const int32_t*>(rows.data_ptr());
  p.mask = static_cast<const bool*>(mask.data_ptr());
  p.dst = static_cast<const int64_t*>(dst.data_ptr());
  p.error_word = match_error_word(error_word, device);
  p.hidden_step = hidden.stride(0);
  p.slot_step = cache.stride(0);
  p.window_step = cache.stride(1);
  p.rows_step = rows.stride(0);
  p.tokens = hidden.size(0);
  p.slots = cache.size(0);
  p.channels = channels.value();

  const Grid grid = word_grid(p.channels, batch.value());
  if (grid.empty()) return;
  switch (history.value()) {
    case 1: return launch_gather_scatter_sconv<1>(p, grid, stream);
    case 2: return launch_gather_scatter_sconv<2>(p, grid, stream);
    case 3: return launch_gather_scatter_sconv<3>(p, grid, stream);
    case 4: return launch_gather_scatter_sconv<4>(p, grid, stream);
  }
}

}  // namespace nosync
