// The C ABI of the table kernels. Callers are the page tables of fused.py, which own the tables and lists and have
// checked type, rank and device of every id tensor; so operands arrive as addresses, steps in elements and counts, and
// a call costs the host no more than its launch. g++ builds this file as it is, for host memory; tables.cu builds it
// with nvcc: then every entry queues on `stream` and returns without waiting. Entries return 0, or the error of the
// launch, which nosync_table_error spells out.

#include "free_unbind.cuh"
#include "hand_out.cuh"
#include "pack_pages.cuh"
#include "rebind.cuh"
#include "translate.cuh"

#include <cstdint>

using nosync::Moves;
using nosync::PageSource;
using nosync::PageTables;
using nosync::PhysicalSource;
using nosync::RingEnd;

namespace {

int32_t launched() {
#ifdef __CUDACC__
  return static_cast<int32_t>(cudaGetLastError());  // of this launch; does not wait for the kernel
#else
  return 0;
#endif
}

nosync::Minting minting(const PageTables* tables, const PageSource* ids, const PhysicalSource* physical,
                        int64_t count) {
  return {*tables, *ids, *physical, count};
}

}  // namespace

extern "C" {

const char* nosync_table_error(int32_t error) {
#ifdef __CUDACC__
  return cudaGetErrorString(static_cast<cudaError_t>(error));
#else
  return error == 0 ? "no error" : "unknown error";
#endif
}

int32_t nosync_free_unbind(void* stream, const PageTables* tables, const int64_t* pages, int64_t at, int64_t capacity,
                           int64_t step, int64_t page_size, int64_t count, int64_t* ids, int64_t ids_at,
                           int64_t ids_capacity, int64_t* holes, int64_t holes_at, int64_t holes_capacity) {
  const PageSource source{pages, at, capacity, step, page_size};
  const RingEnd free_ids{ids, ids_at, ids_capacity}, free_pages{holes, holes_at, holes_capacity};
  nosync::launch_free_unbind({*tables, source, free_ids, free_pages, count}, stream);
  return launched();
}

int32_t nosync_hand_out(void* stream, const PageTables* tables, const PageSource* ids, const PhysicalSource* physical,
                        int64_t count, int64_t* out) {
  nosync::launch_hand_out({minting(tables, ids, physical, count), out}, stream);
  return launched();
}

int32_t nosync_extend(void* stream, const PageTables* tables, const PageSource* ids, const PhysicalSource* physical,
                      int64_t count, const int64_t* prefix, int64_t prefix_step, const int64_t* seq, int64_t seq_step,
                      const int64_t* last, int64_t last_step, int64_t requests, int64_t* out, int64_t total,
                      int64_t threads) {
  const nosync::Requests lens{prefix, seq, last, prefix_step, seq_step, last_step, requests};
  nosync::launch_extend({minting(tables, ids, physical, count), lens, out, total}, threads, stream);
  return launched();
}

int32_t nosync_decode(void* stream, const PageTables* tables, const PageSource* ids, const PhysicalSource* physical,
                      int64_t count, const int64_t* seq, int64_t seq_step, const int64_t* last, int64_t last_step,
                      int64_t requests, int64_t* out, int64_t threads) {
  const nosync::Requests lens{nullptr, seq, last, 0, seq_step, last_step, requests};
  nosync::launch_decode({minting(tables, ids, physical, count), lens, out}, threads, stream);
  return launched();
}

int32_t nosync_translate(void* stream, const PageTables* tables, const int64_t* tokens, int64_t tokens_step,
                         int64_t* out, int64_t out_step, int64_t count) {
  nosync::launch_translate({*tables, tokens, out, tokens_step, out_step, count}, stream);
  return launched();
}

int32_t nosync_rebind(void* stream, const PageTables* tables, const PageSource* kept, const PageSource* incoming,
                      int64_t* granted, int64_t count) {
  nosync::launch_rebind({*tables, *kept, *incoming, granted, count}, stream);
  return launched();
}

int32_t nosync_report_bound(void* stream, const PageTables* tables, const PageSource* pages, int64_t count) {
  nosync::launch_report_bound({*tables, *pages, count}, stream);
  return launched();
}

int32_t nosync_pack_plan(void* stream, const PageTables* tables, const Moves* moves, const int64_t* holes, int64_t low,
                         int64_t up, int64_t threads) {
  nosync::launch_pack_plan({*tables, *moves, holes, low, up}, threads, stream);
  return launched();
}

int32_t nosync_copy_pages(void* stream, const Moves* moves, void* bytes, int64_t page_words, int64_t pages,
                          int64_t threads) {
  nosync::launch_copy_pages({*moves, nosync::envelopes(bytes, page_words, pages)}, threads, stream);
  return launched();
}

int32_t nosync_pack_commit(void* stream, const PageTables* tables, const Moves* moves, const int64_t* holes,
                           int64_t* left_holes, int64_t left) {
  nosync::launch_pack_commit({*tables, *moves, holes, left_holes, left}, stream);
  return launched();
}

int32_t nosync_shift_pages(void* stream, const PageTables* tables, int64_t source, int64_t target, int64_t count,
                           void* bytes, int64_t page_words, int64_t pages, int64_t threads) {
  const nosync::ShiftPagesParams params{*tables, nosync::envelopes(bytes, page_words, pages), source, target};
  nosync::launch_shift_pages(params, count, threads, stream);
  return launched();
}

int32_t nosync_zero_pages(void* stream, const PhysicalSource* physical, int64_t count, void* bytes, int64_t page_words,
                          int64_t pages, int64_t threads) {
  nosync::launch_zero_pages({*physical, nosync::envelopes(bytes, page_words, pages)}, count, threads, stream);
  return launched();
}

}  // extern "C"
