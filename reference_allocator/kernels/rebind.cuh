// Gives physical pages from one set of ids to another, lane by lane. No bytes move. And: whether ids are bound.
//
// In two launches, so that all lanes have looked before the first writes: a page that stands on both sides is then
// found bound by the one lane and given away by the other, whatever their order. In a checked pool a lane whose
// `incoming` is not bound, or whose `kept` is or is no page, sets the error word and changes nothing.
#pragma once

#include <nosync/pages.h>

namespace nosync {

struct RebindParams {
  PageTables tables;
  PageSource kept;
  PageSource incoming;
  int64_t* granted;  // int64 [count]: what each lane gives away, or REFUSED
  int64_t count;
};

inline constexpr int64_t REFUSED = -2;

PORT_FN void rebind_look_body(const Ctx& c, const RebindParams& p) {
  const int64_t lane = c.bx * c.bdx + c.tx;
  if (lane >= p.count) return;
  const PageTables& tables = p.tables;
  const int64_t held = look_up(tables.v2p, tables.v_last, page_at(p.incoming, lane));
  // The sink, and what is no page at all, is given nothing.
  const int64_t kept = inside(page_at(p.kept, lane), tables.v_last) ? page_at(p.kept, lane) : 0;
  const int64_t before = tables.v2p[kept];
  expect_positive(tables, UNKNOWN_ID, kept);
  expect_positive(tables, SWA_NOT_BOUND, held);
  expect_positive(tables, KEPT_STILL_BOUND, 1 - before);
  const bool masked = tables.cells != nullptr && (kept == 0 || held <= 0 || before > 0);
  p.granted[lane] = masked ? REFUSED : held;
}

PORT_FN void rebind_body(const Ctx& c, const RebindParams& p) {
  const int64_t lane = c.bx * c.bdx + c.tx;
  if (lane >= p.count || p.granted[lane] == REFUSED) return;
  const PageTables& tables = p.tables;
  const int64_t kept = page_at(p.kept, lane), held = p.granted[lane];
  write_row(tables.v2p, tables.v_last, kept, held);
  write_row(tables.v2p, tables.v_last, page_at(p.incoming, lane), TOMBSTONE);
  write_row(tables.p2v, tables.p_last, held, kept);
}

struct ReportBoundParams {
  PageTables tables;
  PageSource pages;
  int64_t count;
};

PORT_FN void report_bound_body(const Ctx& c, const ReportBoundParams& p) {
  const int64_t lane = c.bx * c.bdx + c.tx;
  if (lane >= p.count) return;
  expect_positive(p.tables, SWA_STILL_BOUND, 1 - look_up(p.tables.v2p, p.tables.v_last, page_at(p.pages, lane)));
}

#ifdef __CUDACC__
__global__ void report_bound_kernel(const __grid_constant__ ReportBoundParams p) {
  report_bound_body(this_thread(), p);
}
__global__ void rebind_look_kernel(const __grid_constant__ RebindParams p) { rebind_look_body(this_thread(), p); }
__global__ void rebind_kernel(const __grid_constant__ RebindParams p) { rebind_body(this_thread(), p); }
#endif

inline void launch_rebind(const RebindParams& p, void* stream) {
  const Grid grid = lane_grid(p.count);
  if (grid.empty()) return;
#ifdef __CUDACC__
  const auto blocks = static_cast<unsigned>(grid.x), block = static_cast<unsigned>(grid.block);
  rebind_look_kernel<<<blocks, block, 0, static_cast<cudaStream_t>(stream)>>>(p);
  rebind_kernel<<<blocks, block, 0, static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  each_thread(grid, [&](const Ctx& c) { rebind_look_body(c, p); });
  each_thread(grid, [&](const Ctx& c) { rebind_body(c, p); });
#endif
}

inline void launch_report_bound(const ReportBoundParams& p, void* stream) {
  const Grid grid = lane_grid(p.count);
  if (grid.empty()) return;
#ifdef __CUDACC__
  report_bound_kernel<<<static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.block), 0,
                        static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  each_thread(grid, [&](const Ctx& c) { report_bound_body(c, p); });
#endif
}

}  // namespace nosync
