// The operands that both all-reduce kernels share, and their matchers.
#pragma once

#include <nosync/operands.hpp>

#include <cstdint>

namespace nosync {

inline constexpr int64_t WIDEST_ROW = 8192;  // channels: eight a thread, 1024 threads a block

inline Size vector_channels() { return Size("D").between(0, WIDEST_ROW).multiple_of(8); }

// shards [R,T,D] bf16 {any,any,1}; weight [D,W] bf16 {any,1}; residual, residual_out and hs_out [T,D] bf16 {any,1},
// residual_out may be residual; norm_weight [D] bf16. Everything but `weight` on 16 bytes. Throws Mismatch.
inline void match_reduction(const TensorView& shards, const TensorView& weight, const TensorView& residual,
                            const TensorView& norm_weight, const TensorView& residual_out, const TensorView& hs_out,
                            Size& tokens, Size& channels, Size& width, Device& device) {
  Match(shards, "shards")
      .shape({any, tokens, channels})
      .strides({any, any, 1})
      .dtype({BF16})
      .device(device)
      .align(16)
      .range_u16_grid(1)
      .verify();
  Match(weight, "weight").shape({channels, width}).strides({any, 1}).dtype({BF16}).device(device).align(2).verify();
  Match(residual, "residual")
      .shape({tokens, channels})
      .strides({any, 1})
      .dtype({BF16})
      .device(device)
      .align(16)
      .verify();
  Match(norm_weight, "norm_weight").shape({channels}).dtype({BF16}).device(device).align(16).verify();
  Match(residual_out, "residual_out")
      .shape({tokens, channels})
      .strides({any, 1})
      .dtype({BF16})
      .device(device)
      .align(16)
      .no_self_overlap()
      .disjoint_from(shards, "shards")
      .disjoint_from(weight, "weight")
      .disjoint_from(norm_weight, "norm_weight")
      .same_or_disjoint_from(residual, "residual")
      .verify();
  Match(hs_out, "hs_out")
      .shape({tokens, channels})
      .strides({any, 1})
      .dtype({BF16})
      .device(device)
      .align(16)
      .no_self_overlap()
      .disjoint_from(shards, "shards")
      .disjoint_from(weight, "weight")
      .disjoint_from(norm_weight, "norm_weight")
      .disjoint_from(residual, "residual")
      .disjoint_from(residual_out, "residual_out")
      .verify();
}

}  // namespace nosync
