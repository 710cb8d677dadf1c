// Empties a band of pages at a frontier: plans which live pages move to which holes, copies them, commits. Moves a run
// of pages, and fills pages with zeros.
//
// How many of the band's `count` pages are live stays on the device; every launch has a shape that the host knows.
#pragma once

#include <nosync/pages.h>

namespace nosync {

// `source`, `target` and `pages` are int64 [count], of which the first `*live` are used; all where `live` is null.
struct Moves {
  int64_t* source;
  int64_t* target;
  int64_t* pages;
  int64_t* live;
  int64_t count;
};

struct PackPlanParams {
  PageTables tables;
  Moves moves;
  const int64_t* holes;  // int64 [at least count], best target first
  int64_t low;           // the first page of the band
  int64_t up;            // whether targets lie below the band; else above it
};

struct PlanHeld {
  int64_t live;
  int64_t added;
};

// One block. Each thread looks at a run of the band; a scan tells it how many live pages come before.
PORT_FN void pack_plan_body(Team<PlanHeld>& team, int64_t* shared, const PackPlanParams& p, int64_t threads) {
  const int64_t run = (p.moves.count + threads - 1) / threads;
  const int64_t* owners = p.tables.p2v + p.low;
  team.step([&](const Ctx& c, PlanHeld& held) {
    held.live = 0;
    for (int64_t i = c.tx * run; i < (c.tx + 1) * run && i < p.moves.count; ++i) held.live += owners[i] >= 0;
    shared[c.tx] = held.live;
  });
  for (int64_t reach = 1; reach < threads; reach *= 2) {
    team.step([&](const Ctx& c, PlanHeld& held) { held.added = c.tx >= reach ? shared[c.tx - reach] : 0; });
    team.step([&](const Ctx& c, PlanHeld& held) { shared[c.tx] += held.added; });
  }
  team.step([&](const Ctx& c, PlanHeld& held) {
    int64_t rank = shared[c.tx] - held.live;
    if (c.tx == threads - 1) *p.moves.live = shared[c.tx];
    for (int64_t i = c.tx * run; i < (c.tx + 1) * run && i < p.moves.count; ++i) {
      if (owners[i] < 0) continue;
      const int64_t target = p.holes[rank];
      expect_positive(p.tables, PLAN_OVERFLOW, p.up != 0 ? p.low - target : target - (p.low + p.moves.count - 1));
      p.moves.source[rank] = p.low + i;
      p.moves.target[rank] = target;
      p.moves.pages[rank] = owners[i];
      ++rank;
    }
  });
}

struct PackCommitParams {
  PageTables tables;
  Moves moves;
  const int64_t* holes;  // int64 [count + left]
  int64_t* left_holes;   // int64 [left]: those that stay
  int64_t left;
};

PORT_FN void pack_commit_body(const Ctx& c, const PackCommitParams& p) {
  const int64_t lane = c.bx * c.bdx + c.tx;
  const int64_t live = *p.moves.live;
  if (lane < p.left) p.left_holes[lane] = p.holes[live + lane];
  if (lane >= live) return;
  const int64_t page = p.moves.pages[lane], target = p.moves.target[lane];
  write_row(p.tables.v2p, p.tables.v_last, page, target);
  write_row(p.tables.p2v, p.tables.p_last, p.moves.source[lane], TOMBSTONE);
  write_row(p.tables.p2v, p.tables.p_last, target, page);
}

inline constexpr int64_t CHUNK = 2048;  // 16-byte words of a page that one block moves

// The bytes of all pages, on 16 bytes.
struct Envelopes {
  bf16_t* bytes;
  int64_t page_words;  // 16-byte words of a page
  int64_t pages;
  int64_t chunks;  // blocks a page
};

// The words of a page that a block moves.
struct Run {
  bf16_t* page;
  int64_t first;
  int64_t stop;
};

PORT_FN Run run_of(const Envelopes& e, int64_t page, int64_t block) {
  const int64_t first = block % e.chunks * CHUNK;
  return {e.bytes + page * e.page_words * 8, first, first + CHUNK < e.page_words ? first + CHUNK : e.page_words};
}

// Sources and targets are disjoint, so a page is copied word by word and nothing is gathered first.
PORT_FN void copy_run(const Ctx& c, const Envelopes& e, int64_t source, int64_t target) {
  constexpr int FLIGHT = 4;  // loads under way before the first store
  if (!inside(source, e.pages) || !inside(target, e.pages)) return;
  const Run from = run_of(e, source, c.bx), to = run_of(e, target, c.bx);
  for (int64_t word = from.first + c.tx; word < from.stop; word += FLIGHT * c.bdx) {
    Vec16 moved[FLIGHT];
#pragma unroll
    for (int i = 0; i < FLIGHT; ++i) {
      if (word + i * c.bdx < from.stop) moved[i] = load_vec(from.page + (word + i * c.bdx) * 8);
    }
#pragma unroll
    for (int i = 0; i < FLIGHT; ++i) {
      if (word + i * c.bdx < from.stop) store_vec(to.page + (word + i * c.bdx) * 8, moved[i]);
    }
  }
}

struct CopyPagesParams {
  Moves moves;
  Envelopes envelopes;
};

PORT_FN void copy_pages_body(const Ctx& c, const CopyPagesParams& p) {
  const int64_t lane = c.bx / p.envelopes.chunks;
  if (p.moves.live != nullptr && lane >= *p.moves.live) return;
  copy_run(c, p.envelopes, p.moves.source[lane], p.moves.target[lane]);
}

// A solid run of live pages from `source` goes to `target`; the two ranges are disjoint.
struct ShiftPagesParams {
  PageTables tables;
  Envelopes envelopes;
  int64_t source;
  int64_t target;
};

// Bytes and rows in one launch: nobody looks at either before it is done.
PORT_FN void shift_pages_body(const Ctx& c, const ShiftPagesParams& p) {
  const int64_t lane = c.bx / p.envelopes.chunks, source = p.source + lane, target = p.target + lane;
  copy_run(c, p.envelopes, source, target);
  if (c.bx % p.envelopes.chunks != 0 || c.tx != 0) return;
  const int64_t page = look_up(p.tables.p2v, p.tables.p_last, source);
  write_row(p.tables.v2p, p.tables.v_last, page, target);
  write_row(p.tables.p2v, p.tables.p_last, target, page);
  write_row(p.tables.p2v, p.tables.p_last, source, TOMBSTONE);
}

struct ZeroPagesParams {
  PhysicalSource physical;
  Envelopes envelopes;
};

PORT_FN void zero_pages_body(const Ctx& c, const ZeroPagesParams& p) {
  const int64_t page = physical_at(p.physical, c.bx / p.envelopes.chunks);
  if (!inside(page, p.envelopes.pages)) return;
  const Run run = run_of(p.envelopes, page, c.bx);
  for (int64_t word = run.first + c.tx; word < run.stop; word += c.bdx) store_vec(run.page + word * 8, Vec16{});
}

#ifdef __CUDACC__
__global__ void __launch_bounds__(LARGEST_TEAM) pack_plan_kernel(const __grid_constant__ PackPlanParams p) {
  __shared__ int64_t shared[LARGEST_TEAM];
  Team<PlanHeld> team{this_thread(), {}};
  pack_plan_body(team, shared, p, team.ctx.bdx);
}

__global__ void pack_commit_kernel(const __grid_constant__ PackCommitParams p) { pack_commit_body(this_thread(), p); }
__global__ void copy_pages_kernel(const __grid_constant__ CopyPagesParams p) { copy_pages_body(this_thread(), p); }
__global__ void shift_pages_kernel(const __grid_constant__ ShiftPagesParams p) {
  shift_pages_body(this_thread(), p);
}
__global__ void zero_pages_kernel(const __grid_constant__ ZeroPagesParams p) { zero_pages_body(this_thread(), p); }
#endif

// `threads` is a power of two of at most LARGEST_TEAM, here and below.
inline void launch_pack_plan(const PackPlanParams& p, int64_t threads, void* stream) {
#ifdef __CUDACC__
  pack_plan_kernel<<<1, static_cast<unsigned>(threads), 0, static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  int64_t shared[LARGEST_TEAM];
  Team<PlanHeld> team(0, 0, threads);
  pack_plan_body(team, shared, p, threads);
#endif
}

inline void launch_pack_commit(const PackCommitParams& p, void* stream) {
  const Grid grid = lane_grid(p.moves.count > p.left ? p.moves.count : p.left);
#ifdef __CUDACC__
  pack_commit_kernel<<<static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.block), 0,
                       static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  each_thread(grid, [&](const Ctx& c) { pack_commit_body(c, p); });
#endif
}

inline Envelopes envelopes(void* bytes, int64_t page_words, int64_t pages) {
  return {static_cast<bf16_t*>(bytes), page_words, pages, (page_words + CHUNK - 1) / CHUNK};
}

inline void launch_copy_pages(const CopyPagesParams& p, int64_t threads, void* stream) {
#ifdef __CUDACC__
  copy_pages_kernel<<<static_cast<unsigned>(p.moves.count * p.envelopes.chunks), static_cast<unsigned>(threads), 0,
                      static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  each_thread({p.moves.count * p.envelopes.chunks, 1, threads}, [&](const Ctx& c) { copy_pages_body(c, p); });
#endif
}

inline void launch_shift_pages(const ShiftPagesParams& p, int64_t count, int64_t threads, void* stream) {
#ifdef __CUDACC__
  shift_pages_kernel<<<static_cast<unsigned>(count * p.envelopes.chunks), static_cast<unsigned>(threads), 0,
                       static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  each_thread({count * p.envelopes.chunks, 1, threads}, [&](const Ctx& c) { shift_pages_body(c, p); });
#endif
}

inline void launch_zero_pages(const ZeroPagesParams& p, int64_t count, int64_t threads, void* stream) {
#ifdef __CUDACC__
  zero_pages_kernel<<<static_cast<unsigned>(count * p.envelopes.chunks), static_cast<unsigned>(threads), 0,
                      static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  each_thread({count * p.envelopes.chunks, 1, threads}, [&](const Ctx& c) { zero_pages_body(c, p); });
#endif
}

}  // namespace nosync
