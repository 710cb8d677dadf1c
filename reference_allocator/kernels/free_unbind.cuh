// Frees pages: looks up where they are, tombstones both tables, and appends to the lists of free ids and of holes.
//
// One lane a page. In a checked pool a page that is not bound sets the error word, and page 0 goes into both lists.
#pragma once

#include <nosync/pages.h>

namespace nosync {

struct FreeUnbindParams {
  PageTables tables;
  PageSource pages;
  RingEnd ids;
  RingEnd holes;
  int64_t count;
};

PORT_FN void free_unbind_body(const Ctx& c, const FreeUnbindParams& p) {
  const int64_t lane = c.bx * c.bdx + c.tx;
  if (lane >= p.count) return;
  const PageTables& tables = p.tables;
  const int64_t page = page_at(p.pages, lane);
  int64_t held = TOMBSTONE;
  if (page == 0) {
    held = 0;
  } else if (inside(page, tables.v_last)) {
    held = exchange(tables.v2p + page, TOMBSTONE);  // of two lanes with one page, the second finds the tombstone
  }
  if (held > 0) write_row(tables.p2v, tables.p_last, held, TOMBSTONE);
  expect_positive(tables, tables.free_cell, held);
  const bool masked = tables.cells != nullptr && held <= 0;
  put(p.ids, lane, masked ? 0 : page);
  put(p.holes, lane, masked ? 0 : held);
}

#ifdef __CUDACC__
__global__ void free_unbind_kernel(const __grid_constant__ FreeUnbindParams p) { free_unbind_body(this_thread(), p); }
#endif

inline void launch_free_unbind(const FreeUnbindParams& p, void* stream) {
  const Grid grid = lane_grid(p.count);
  if (grid.empty()) return;
#ifdef __CUDACC__
  free_unbind_kernel<<<static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.block), 0,
                       static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  each_thread(grid, [&](const Ctx& c) { free_unbind_body(c, p); });
#endif
}

}  // namespace nosync
