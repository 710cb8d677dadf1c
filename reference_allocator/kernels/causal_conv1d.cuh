// K2: the short causal convolution of a prefill: y = act(sum of taps times weights) (+ x).
//
// Taps before the start of a sequence come from its conv state, and count as zero where `mask` is false (unless
// `decode`) and in PAD lanes. The state is only read. One 32-bit word (two channels) of one token a thread; each
// thread loads the metadata of its token itself, so there is no barrier.
#pragma once

#include <nosync/conv.h>
#include <nosync/operands.hpp>
#include <nosync/port.h>

namespace nosync {

struct CausalConv1dParams {
  const bf16_t* x;
  const bf16_t* cache;
  const int64_t* slot;
  const bool* mask;
  const bf16_t* weight;
  const int64_t* cu;
  const int32_t* seq;
  bf16_t* y;
  int32_t* error_word;
  int64_t x_step;
  int64_t slot_step;
  int64_t window_step;
  int64_t weight_step;
  int64_t y_step;
  int64_t slots;
  int64_t sequences;
  int64_t channels;
  Finish finish;
  bool decode;
};

template <int HISTORY>
PORT_FN void causal_conv1d_body(const Ctx& c, const CausalConv1dParams& p) {
  const int64_t channel = 2 * (c.bx * c.bdx + c.tx);
  if (channel >= p.channels) return;
  const int64_t sequence = p.seq[c.by];
  if (!inside(sequence, p.sequences)) {
    report(p.error_word, BAD_INDEX);
    return;
  }
  const int64_t start = p.cu[sequence];
  const int64_t position = c.by - start;  // of the token in its sequence
  const int64_t slot = p.slot[sequence];
  const bool known = slot != PAD_SLOT && (p.decode || p.mask[sequence]);
  if (start < 0 || position < 0 || (known && !inside(slot, p.slots))) {
    report(p.error_word, BAD_INDEX);
    return;
  }
  uint32_t taps[HISTORY + 1];
#pragma unroll
  for (int j = 0; j <= HISTORY; ++j) {
    const int64_t row = position + j;  // in old state ++ rows of the sequence
    if (row >= HISTORY) {
      taps[j] = load_word(p.x + (c.by + j - HISTORY) * p.x_step + channel);
    } else {
      taps[j] = known ? load_word(p.cache + slot * p.slot_step + row * p.window_step + channel) : 0u;
    }
  }
  const Pair sum = tap_sum(taps, p.weight + channel * p.weight_step, p.weight_step);
  store_word(p.y + c.by * p.y_step + channel, finished(sum, taps[HISTORY], p.finish));
}

#ifdef __CUDACC__
template <int HISTORY>
__global__ void causal_conv1d_kernel(const __grid_constant__ CausalConv1dParams p) {
  causal_conv1d_body<HISTORY>(this_thread(), p);
}
#endif

template <int HISTORY>
void launch_causal_conv1d(const CausalConv1dParams& p, const Grid& grid, void* stream) {
#ifdef __CUDACC__
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y));
  causal_conv1d_kernel<HISTORY>
      <<<blocks, static_cast<unsigned>(grid.block), 0, static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  each_thread(grid, [&](const Ctx& c) { causal_conv1d_body<HISTORY>(c, p); });
#endif
}

// x, y [T,D] bf16 {any,1}; cache [slots,W-1,D] bf16 {any,any,1}; slot i64 [S]; mask bool [S]; weight [D,W] bf16
// {any,1}; cu i64 [S+1]; seq i32 [T]. Queues one kernel on `stream` and returns. Throws Mismatch. The device form
// does not block the host.
inline void causal_conv1d(const TensorView& x, const TensorView& cache, const TensorView& slot, const TensorView& mask,
                          const TensorView& weight, const TensorView& cu, const TensorView& seq, const TensorView& y,
                          Finish finish, bool decode, const std::optional<TensorView>& error_word, void* stream) {
  Size history = history_size(), channels = Size("D").multiple_of(2), tokens("T"), sequences("S");
  Device device("device", {BUILT_FOR});
  Match(cache, "cache")
      .shape({any, history, channels})
      .strides({any, any, 1})
      .dtype({BF16})
      .device(device)
      .align(4)
      .no_self_overlap()
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
  Match(slot, "slot").shape({sequences}).dtype({I64}).device(device).align(8).verify();
  Match(mask, "mask").shape({sequences}).dtype({BOOL}).device(device).verify();
  Size bounds("S+1", sequences.value() + 1);
  Match(cu, "cu").shape({bounds}).dtype({I64}).device(device).align(8).verify();
  Match(seq, "seq").shape({tokens}).dtype({I32}).device(device).align(4).verify();
  Match(y, "y")
      .shape({tokens, channels})
      .strides({any, 1})
      .dtype({BF16})
      .device(device)
      .align(4)
      .no_self_overlap()
      .disjoint_from(x, "x")
      .disjoint_from(cache, "cache")
      .disjoint_from(weight, "weight")
      .verify();

  CausalConv1dParams p{};
  p.x = static_cast<const bf16_t*>(x.data_ptr());
  p.cache = static_cast<const bf16_t*>(cache.data_ptr());
  p.slot = static_cast<const int64_t*>(slot.data_ptr());
  p.mask = static_cast<const bool*>(mask.data_ptr());
  p.weight = static_cast<const bf16_t*>(weight.data_ptr());
  p.cu = static_cast<const int64_t*>(cu.data_ptr());
  p.seq = static_cast<const int32_t*>(seq.data_ptr());
  p.y = static_cast<bf16_t*>(y.data_ptr());
  p.error_word = match_error_word(error_word, device);
  p.x_step = x.stride(0);
  p.slot_step = cache.stride(0);
  p.window_step = cache.stride(1);
  p.weight_step = weight.stride(0);
  p.y_step = y.stride(0);
  p.slots = cache.size(0);
  p.sequences = sequences.value();
  p.channels = channels.value();
  p.finish = finish;
  p.decode = decode;

  const Grid grid = word_grid(p.channels, tokens.value());
  if (grid.empty()) return;
  switch (history.value()) {
    case 1: return launch_causal_conv1d<1>(p, grid, stream);
    case 2: return launch_causal_conv1d<2>(p, grid, stream);
    case 3: return launch_causal_conv1d<3>(p, grid, stream);
    case 4: return launch_causal_conv1d<4>(p, grid, stream);
  }
}

}  // namespace nosync
