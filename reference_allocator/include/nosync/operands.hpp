// Facts that the matchers of all conv-state kernels share.
#pragma once

#include <nosync/match.hpp>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace nosync {

// A library compiled by nvcc launches on CUDA memory only, one compiled by g++ loops over host memory only.
#ifdef __CUDACC__
inline constexpr Dev BUILT_FOR = CUDA;
#else
inline constexpr Dev BUILT_FOR = CPU;
#endif

inline constexpr int64_t LONGEST_HISTORY = 4;  // rows of a conv state, W-1: bodies are compiled for 1..4

inline Size history_size() { return Size("W-1").between(1, LONGEST_HISTORY); }

// The sticky error word, int32 [8]; null where the caller gives none.
inline int32_t* match_error_word(const std::optional<TensorView>& error_word, Device& device) {
  if (!error_word.has_value()) return nullptr;
  const TensorView& given = error_word.value();
  Match(given, "error_word").shape({8}).dtype({I32}).device(device).align(4).verify();
  return static_cast<int32_t*>(given.data_ptr());
}

// Optional operands that only make sense together. Throws std::invalid_argument.
inline void demand_together(const char* names, int given, int all) {
  if (given != 0 && given != all) {
    throw std::invalid_argument(std::string(names) + " belong together: " + std::to_string(given) + " of " +
                                std::to_string(all) + " given");
  }
}

}  // namespace nosync
