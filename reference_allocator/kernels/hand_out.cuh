// Hands out tokens: reads the next free ids where the host knows them to be, binds them, and writes token ids.
//
// Three forms: whole pages, requests that grow by any number of tokens, and requests that grow by one. Every page
// that begins is bound by the lane of its first token.
#pragma once

#include <nosync/pages.h>

namespace nosync {

// The `count` next ids, and where they go.
struct Minting {
  PageTables tables;
  PageSource ids;
  PhysicalSource physical;
  int64_t count;
};

// The id of a page, bound if this is the lane of its first token.
PORT_FN int64_t minted(const Minting& m, int64_t lane, bool first) {
  const int64_t page = page_at(m.ids, lane);
  if (first) bind_lane(m.tables, page, physical_at(m.physical, lane));
  return page;
}

struct HandOutParams {
  Minting mint;
  int64_t* out;  // int64 [count * page_size], or null where nobody wants the tokens
};

PORT_FN void hand_out_body(const Ctx& c, const HandOutParams& p) {
  const int64_t lane = c.bx * c.bdx + c.tx;
  const int64_t width = p.out == nullptr ? 1 : p.mint.tables.page_size;
  if (lane >= p.mint.count * width) return;
  const int64_t offset = lane % width;
  const int64_t page = minted(p.mint, lane / width, offset == 0);
  if (p.out != nullptr) p.out[lane] = page * width + offset;
}

// Lengths of requests, int64 [bs] with any step: before, after, and the last token of each.
struct Requests {
  const int64_t* prefix;
  const int64_t* seq;
  const int64_t* last;
  int64_t prefix_step;
  int64_t seq_step;
  int64_t last_step;
  int64_t count;
};

struct ExtendParams {
  Minting mint;
  Requests requests;
  int64_t* out;  // int64 [total]
  int64_t total;
};

struct NoHeld {};

// Sums over the first `done` requests. Blocks of a device know none; one after another on the host they know the last.
struct Known {
  int64_t done;
  Sums sums;
};

// One request a block, which adds up what comes before it; that is left in `shared[0]`.
PORT_FN void extend_body(Team<NoHeld>& team, Sums* shared, const ExtendParams& p, int64_t request, int64_t threads,
                         const Known& known) {
  const Requests& r = p.requests;
  const int64_t page_size = p.mint.tables.page_size;
  team.step([&](const Ctx& c, NoHeld&) {
    Sums sums = c.tx == 0 ? known.sums : Sums{0, 0};
    for (int64_t i = known.done + c.tx; i < request; i += threads) {
      const int64_t before = r.prefix[i * r.prefix_step], after = r.seq[i * r.seq_step];
      sums.first += after - before;
      sums.second += pages_for(after, page_size) - pages_for(before, page_size);
    }
    shared[c.tx] = sums;
  });
  add_up(team, shared, threads);
  team.step([&](const Ctx& c, NoHeld&) {
    const int64_t before = r.prefix[request * r.prefix_step], after = r.seq[request * r.seq_step];
    const int64_t last = r.last[request * r.last_step], had = pages_for(before, page_size);
    // What lies beyond the lengths is the last request's: no token of `out` is left as it was.
    const int64_t rest = p.total - shared[0].first, grown = after - before;
    const int64_t count = request == r.count - 1 && rest > grown ? rest : grown;
    for (int64_t done = c.tx; done < count; done += threads) {
      const int64_t position = before + done, offset = position % page_size;
      const int64_t lane = shared[0].second + position / page_size - had;
      int64_t token = last + 1 + done;
      if (position / page_size >= had && inside(lane, p.mint.count)) {
        token = minted(p.mint, lane, offset == 0) * page_size + offset;
      }
      if (inside(shared[0].first + done, p.total)) p.out[shared[0].first + done] = token;
    }
  });
}

struct DecodeParams {
  Minting mint;
  Requests requests;  // without `prefix`
  int64_t* out;       // int64 [bs]
};

PORT_FN bool starts_page(const DecodeParams& p, int64_t request) {
  return (p.requests.seq[request * p.requests.seq_step] - 1) % p.mint.tables.page_size == 0;
}

// As many requests as threads a block, which counts the pages that begin before them; that is left in `shared[0]`.
PORT_FN void decode_body(Team<NoHeld>& team, Sums* shared, const DecodeParams& p, int64_t block, int64_t threads,
                         const Known& known) {
  const Requests& r = p.requests;
  const int64_t first = block * threads;
  if (p.mint.count > 0) {
    team.step([&](const Ctx& c, NoHeld&) {
      Sums sums = c.tx == 0 ? known.sums : Sums{0, 0};
      for (int64_t i = known.done + c.tx; i < first; i += threads) sums.first += starts_page(p, i);
      shared[c.tx] = sums;
    });
    add_up(team, shared, threads);
  }
  team.step([&](const Ctx& c, NoHeld&) {
    const int64_t request = first + c.tx;
    if (request >= r.count) return;
    int64_t token = r.last[request * r.last_step] + 1;
    if (p.mint.count > 0 && starts_page(p, request)) {
      int64_t lane = shared[0].first;
      for (int64_t i = first; i < request; ++i) lane += starts_page(p, i);
      if (inside(lane, p.mint.count)) token = minted(p.mint, lane, true) * p.mint.tables.page_size;
    }
    p.out[request] = token;
  });
}

#ifdef __CUDACC__
__global__ void hand_out_kernel(const __grid_constant__ HandOutParams p) { hand_out_body(this_thread(), p); }

__global__ void __launch_bounds__(LARGEST_TEAM) extend_kernel(const __grid_constant__ ExtendParams p) {
  __shared__ Sums shared[LARGEST_TEAM];
  Team<NoHeld> team{this_thread(), {}};
  extend_body(team, shared, p, team.ctx.bx, team.ctx.bdx, {});
}

__global__ void __launch_bounds__(LARGEST_TEAM) decode_kernel(const __grid_constant__ DecodeParams p) {
  __shared__ Sums shared[LARGEST_TEAM];
  Team<NoHeld> team{this_thread(), {}};
  decode_body(team, shared, p, team.ctx.bx, team.ctx.bdx, {});
}
#endif

inline void launch_hand_out(const HandOutParams& p, void* stream) {
  const Grid grid = lane_grid(p.mint.count * (p.out == nullptr ? 1 : p.mint.tables.page_size));
  if (grid.empty()) return;
#ifdef __CUDACC__
  hand_out_kernel<<<static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.block), 0,
                    static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  each_thread(grid, [&](const Ctx& c) { hand_out_body(c, p); });
#endif
}

// `threads` is a power of two of at most LARGEST_TEAM. Several on the host do what they do on the device.
inline void launch_extend(const ExtendParams& p, int64_t threads, void* stream) {
  if (p.requests.count == 0) return;
#ifdef __CUDACC__
  extend_kernel<<<static_cast<unsigned>(p.requests.count), static_cast<unsigned>(threads), 0,
                  static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  Sums shared[LARGEST_TEAM] = {};
  Known known{};
  for (int64_t request = 0; request < p.requests.count; ++request) {
    Team<NoHeld> team(request, 0, threads);
    extend_body(team, shared, p, request, threads, known);
    if (threads == 1) known = {request, shared[0]};
  }
#endif
}

inline void launch_decode(const DecodeParams& p, int64_t threads, void* stream) {
  const int64_t blocks = (p.requests.count + threads - 1) / threads;
  if (blocks == 0) return;
#ifdef __CUDACC__
  decode_kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0,
                  static_cast<cudaStream_t>(stream)>>>(p);
#else
  (void)stream;
  Sums shared[LARGEST_TEAM] = {};
  Known known{};
  for (int64_t block = 0; block < blocks; ++block) {
    Team<NoHeld> team(block, 0, threads);
    decode_body(team, shared, p, block, threads, known);
    if (threads == 1) known = {block, shared[0]};
  }
#endif
}

}  // namespace nosync
