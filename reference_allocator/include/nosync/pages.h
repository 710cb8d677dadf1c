// Page tables, and lists of pages whose place the host knows. What the table kernels are made of.
//
// Ids are int64. A table has one row per page and a last row that stays -1. Lanes with ids outside a table write
// nothing, so that no id, however wrong, is followed out of an array.
#pragma once

#include <nosync/port.h>

#include <cstdint>

namespace nosync {

inline constexpr int64_t TOMBSTONE = -1;

// Cells of the error word, one per bit; `Fault` in error_word.py.
enum FaultCell : int32_t {
  SWA_NOT_BOUND = 2,
  SWA_STILL_BOUND = 3,
  SINK_HANDED_OUT = 4,
  KEPT_STILL_BOUND = 5,
  PLAN_OVERFLOW = 6,
  UNKNOWN_ID = 7
};

// The tables of one pool; mirrored by `TablesRecord` in table_kernels.py. `v_last` and `p_last` are the last rows.
// `cells` is the error word, int64 [8], or null in a pool that is not checked; `free_cell` is where a free of an
// unbound page goes.
struct PageTables {
  int64_t* v2p;
  int64_t* p2v;
  int64_t v_last;
  int64_t p_last;
  int64_t page_size;
  int64_t* cells;
  int64_t free_cell;
};

// The free end of a ring: where the next entries go. No ring at all where `values` is null.
struct RingEnd {
  int64_t* values;
  int64_t at;
  int64_t capacity;
};

// Pages to read: entries of a ring, or of a tensor, which is a ring that has no end. `step` is in elements; an entry
// is a page where `page_size` is 1, else a token of one.
struct PageSource {
  const int64_t* values;
  int64_t at;
  int64_t capacity;
  int64_t step;
  int64_t page_size;
};

// Physical pages: `drained` entries of a ring, then `first` ascending pages from `start`, then more from `next`.
struct PhysicalSource {
  const int64_t* values;
  int64_t at;
  int64_t capacity;
  int64_t drained;
  int64_t start;
  int64_t first;
  int64_t next;
};

// `at` and `lane` are below `capacity`.
PORT_FN int64_t around(int64_t at, int64_t lane, int64_t capacity) {
  return lane < capacity - at ? at + lane : lane - (capacity - at);
}

PORT_FN void put(const RingEnd& ring, int64_t lane, int64_t value) {
  if (ring.values != nullptr) ring.values[around(ring.at, lane, ring.capacity)] = value;
}

// Division that rounds down, for a token that may be negative.
PORT_FN int64_t page_of(int64_t token, int64_t page_size) {
  return token >= 0 ? token / page_size : -((page_size - 1 - token) / page_size);
}

PORT_FN int64_t pages_for(int64_t tokens, int64_t page_size) { return (tokens + page_size - 1) / page_size; }

PORT_FN int64_t page_at(const PageSource& source, int64_t lane) {
  return page_of(source.values[around(source.at, lane, source.capacity) * source.step], source.page_size);
}

PORT_FN int64_t physical_at(const PhysicalSource& source, int64_t lane) {
  if (lane < source.drained) return source.values[around(source.at, lane, source.capacity)];
  const int64_t grown = lane - source.drained;
  return grown < source.first ? source.start + grown : source.next + grown - source.first;
}

// The row of an id, or -1 for one outside the table.
PORT_FN int64_t look_up(const int64_t* table, int64_t last, int64_t id) {
  return inside(id, last) ? table[id] : TOMBSTONE;
}

PORT_FN void write_row(int64_t* table, int64_t last, int64_t id, int64_t value) {
  if (inside(id, last)) table[id] = value;
}

// Keeps the lowest value that should have been positive, in a pool that is checked.
PORT_FN void expect_positive(const PageTables& tables, int64_t cell, int64_t value) {
  if (tables.cells != nullptr && value <= 0) lower(tables.cells + cell, value);
}

PORT_FN void bind_lane(const PageTables& tables, int64_t page, int64_t physical) {
  expect_positive(tables, SINK_HANDED_OUT, page);
  write_row(tables.v2p, tables.v_last, page, physical);
  write_row(tables.p2v, tables.p_last, physical, page);
}

// A cell for every thread of a block, and what the block adds up in them.
struct Sums {
  int64_t first;
  int64_t second;
};

inline constexpr int64_t LARGEST_TEAM = 256;  // threads, a power of two

// Adds up the cells of a block into the first of them.
template <class Held>
PORT_FN void add_up(Team<Held>& team, Sums* shared, int64_t threads) {
  for (int64_t reach = threads / 2; reach > 0; reach /= 2) {
    team.step([&](const Ctx& c, Held&) {
      if (c.tx >= reach) return;
      shared[c.tx].first += shared[c.tx + reach].first;
      shared[c.tx].second += shared[c.tx + reach].second;
    });
  }
}

}  // namespace nosync
