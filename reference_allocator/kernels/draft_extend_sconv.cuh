// K3: after draft tokens were verified, the conv state moves on by as many rows as were accepted. A pure copy.
//
// rows = (old state) ++ hidden[b*T : (b+1)*T]; state of the slot = the W-1 rows from `accepted`. Where `crossed`, the
// W-1 rows from `track_step` go to `track_slot` as well. A PAD lane does nothing. One 32-bit word a thread; all rows
// of both windows are in registers before the first store.
#pragma once

#include <nosync/operands.hpp>
#include <nosync/port.h>

namespace nosync {

struct DraftExtendSconvParams {
  const bf16_t* hidden;
  bf16_t* cache;
  const int32_t* cache_indices;
  const int32_t* accepted;
  const bool* crossed;
  const int32_t* track_step;
  const int64_t* track_slot;
  int32_t* error_word;
  int64_t hidden_step;
  int64_t slot_step;
  int64_t window_step;
  int64_t slots;
  int64_t draft;
  int64_t channels;
};

template <int HISTORY>
PORT_FN void draft_extend_sconv_body(const Ctx& c, const DraftExtendSconvParams& p) {
  const int64_t channel = 2 * (c.bx * c.bdx + c.tx);
  if (channel >= p.channels) return;
  const int64_t slot = p.cache_indices[c.by];
  if (slot == PAD_SLOT) return;
  const int64_t accepted = p.accepted[c.by];
  const bool tracked = p.crossed != nullptr && p.crossed[c.by] && p.track_slot[c.by] != PAD_SLOT;
  const int64_t track_slot = tracked ? p.track_slot[c.by] : slot;
  const int64_t track_step = tracked ? p.track_step[c.by] : accepted;
  if (!inside(slot, p.slots) || !inside(accepted, p.draft + 1) || !inside(track_slot, p.slots) ||
      !inside(track_step, p.draft + 1)) {
    report(p.error_word, BAD_INDEX);
    return;
  }
  bf16_t* state = p.cache + slot * p.slot_step + channel;
  const bf16_t* rows = p.hidden + c.by * p.draft * p.hidden_step + channel;
  uint32_t window[HISTORY], track[HISTORY];
#pragma unroll
  for (int w = 0; w < HISTORY; ++w) {
    const int64_t row = accepted + w, seen = track_step + w;
    window[w] = row < HISTORY ? load_word(state + row * p.window_step)
                              : load_word(rows + (row - HISTORY) * p.hidden_step);
    track[w] = !tracked         ? 0u
               : seen < HISTORY ? load_word(state + seen * p.window_step)
                                : load_word(rows + (seen - HISTORY) * p.hidden_step);
  }
#pragma unroll
  for (int w = 0; w < HISTORY; ++w) store_word(state + w * p.window_step, window[w]);
  if (!tracked) return;
  bf16_t* kept = p.cache + track_slot * p.slot_step + channel;
#pragma unroll
  for (int w = 0; w < HISTORY; ++w) store_word(kept + w * p.window_step, track[w]);
}

#ifdef __CUDACC__
template <int HISTORY>
__global__ void draft_extend_sconv_kernel(const __grid_constant__ DraftExtendSconvParams p) {
  draft_extend_sconv_body<HISTORY>(this_thread(), p);
}
#endif

template <int HISTORY>
void launch_draft_extend_sconv(const DraftExtendSconvParams& p, const Grid& grid, void* stream) {
#ifdef __CUDACC__
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y));
  draft_extend_sconv_kernel<HISTORY>
      <<<blocks, static_cast<unsigned>(grid.block), 0, static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  each_thread(grid, [&](const Ctx& c) { draft_extend_sconv_body<HISTORY>(c, p); });
#endif
}

// hidden [B*T,D] bf16 {any,1}; cache [slots,W-1,D] bf16 {any,any,1}; cache_indices, accepted i32 [B]; crossed bool [B],
// track_step i32 [B] and track_slot i64 [B] together or not at all. `draft` is T. Queues one kernel on `stream` and
// returns. Throws Mismatch. The device form does not block the host.
inline void draft_extend_sconv(const TensorView& hidden, const TensorView& cache, const TensorView& cache_indices,
                               const TensorView& accepted, int64_t draft, const std::optional<TensorView>& crossed,
                               const std::optional<TensorView>& track_step,
                               const std::optional<TensorView>& track_slot,
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
  Match(cache_indices, "cache_indices")
      .shape({batch})
      .dtype({I32})
      .device(device)
      .align(4)
      .range_u16_grid(0)
      .verify();
  Match(accepted, "accepted").shape({batch}).dtype({I32}).device(device).align(4).verify();
  Size rows("B*T", batch.value() * draft);
  Match(hidden, "hidden").shape({rows, channels}).strides({any, 1}).dtype({BF16}).device(device).align(4).verify();

  DraftExtendSconvParams p{};
  if (crossed.has_value()) {
    const TensorView& mask = crossed.value();
    Match(mask, "crossed").shape({batch}).dtype({BOOL}).device(device).verify();
    p.crossed = static_cast<const bool*>(mask.data_ptr());
  }
  if (track_step.has_value()) {
    const TensorView& steps = track_step.value();
    Match(steps, "track_step").shape({batch}).dtype({I32}).device(device).align(4).verify();
    p.track_step = static_cast<const int32_t*>(steps.data_ptr());
  }
  if (track_slot.has_value()) {
    const TensorView& kept = track_slot.value();
    Match(kept, "track_slot").shape({batch}).dtype({I64}).device(device).align(8).verify();
    p.track_slot = static_cast<const int64_t*>(kept.data_ptr());
  }
  demand_together("crossed, track_step and track_slot",
                  crossed.has_value() + track_step.has_value() + track_slot.has_value(), 3);
  p.hidden = static_cast<const bf16_t*>(hidden.data_ptr());
  p.cache = static_cast<bf16_t*>(cache.data_ptr());
  p.cache_indices = static_cast<const int32_t*>(cache_indices.data_ptr());
  p.accepted = static_cast<const int32_t*>(accepted.data_ptr());
  p.error_word = match_error_word(error_word, device);
  p.hidden_step = hidden.stride(0);
  p.slot_step = cache.stride(0);
  p.window_step = cache.stride(1);
  p.slots = cache.size(0);
  p.draft = draft;
  p.channels = channels.value();

  const Grid grid = word_grid(p.channels, batch.value());
  if (grid.empty()) return;
  switch (history.value()) {
    case 1: return launch_draft_extend_sconv<1>(p, grid, stream);
    case 2: return launch_draft_extend_sconv<2>(p, grid, stream);
    case 3: return launch_draft_extend_sconv<3>(p, grid, stream);
    case 4: return launch_draft_extend_sconv<4>(p, grid, stream);
  }
}

}  // namespace nosync
