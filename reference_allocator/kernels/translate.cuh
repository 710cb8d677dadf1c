// Physical tokens of virtual ones; negative, unbound and foreign ids give 0. The output may be the input.
#pragma once

#include <nosync/pages.h>

namespace nosync {

struct TranslateParams {
  PageTables tables;
  const int64_t* tokens;
  int64_t* out;
  int64_t tokens_step;
  int64_t out_step;
  int64_t count;
};

PORT_FN void translate_body(const Ctx& c, const TranslateParams& p) {
  const int64_t lane = c.bx * c.bdx + c.tx;
  if (lane >= p.count) return;
  const int64_t page_size = p.tables.page_size;
  const int64_t token = p.tokens[lane * p.tokens_step];
  const int64_t held = token < 0 ? TOMBSTONE : look_up(p.tables.v2p, p.tables.v_last, token / page_size);
  p.out[lane * p.out_step] = held < 0 ? 0 : held * page_size + token % page_size;
}

#ifdef __CUDACC__
__global__ void translate_kernel(const __grid_constant__ TranslateParams p) { translate_body(this_thread(), p); }
#endif

inline void launch_translate(const TranslateParams& p, void* stream) {
  const Grid grid = lane_grid(p.count);
  if (grid.empty()) return;
#ifdef __CUDACC__
  translate_kernel<<<static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.block), 0,
                     static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  each_thread(grid, [&](const Ctx& c) { translate_body(c, p); });
#endif
}

}  // namespace nosync
