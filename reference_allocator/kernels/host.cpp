// The C ABI of the conv-state kernels. Operands arrive as `TensorView` records, an absent one as a null pointer; every
// exception becomes a return code and a `Failure` that the caller reads. g++ builds this file as it is, for host
// memory; dev.cu builds it with nvcc, for device memory: then every entry queues one kernel on `stream` and returns
// without waiting.

#include "ar_fused_decode.cuh"
#include "causal_conv1d.cuh"
#include "draft_extend_sconv.cuh"
#include "fused_decode_update.cuh"
#include "gather_scatter_sconv.cuh"
#include "update_sconv_cache.cuh"

#include <nosync/abi.hpp>
#include <nosync/operands.hpp>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace {

using nosync::Failure;
using nosync::guarded;
using nosync::TensorView;

const TensorView& needed(const TensorView* operand, const char* name) {
  if (operand == nullptr) throw std::invalid_argument(std::string(name) + " is missing");
  return *operand;
}

std::optional<TensorView> optional(const TensorView* operand) {
  return operand == nullptr ? std::nullopt : std::optional<TensorView>(*operand);
}

}  // namespace

#define NEEDED(operand) needed(operand, #operand)

extern "C" {

int32_t nosync_update_sconv_cache(Failure* failure, void* stream, const TensorView* x, const TensorView* cache,
                                  const TensorView* cache_indices, const TensorView* has_state,
                                  const TensorView* query_start, const TensorView* error_word) {
  return guarded(failure, [&] {
    nosync::update_sconv_cache(NEEDED(x), NEEDED(cache), NEEDED(cache_indices), NEEDED(has_state),
                               NEEDED(query_start), optional(error_word), stream);
  });
}

int32_t nosync_draft_extend_sconv(Failure* failure, void* stream, const TensorView* hidden,
                                  const TensorView* cache, const TensorView* cache_indices, const TensorView* accepted,
                                  int64_t draft, const TensorView* crossed, const TensorView* track_step,
                                  const TensorView* track_slot, const TensorView* error_word) {
  return guarded(failure, [&] {
    nosync::draft_extend_sconv(NEEDED(hidden), NEEDED(cache), NEEDED(cache_indices), NEEDED(accepted), draft,
                               optional(crossed), optional(track_step), optional(track_slot), optional(error_word),
                               stream);
  });
}

int32_t nosync_gather_scatter_sconv(Failure* failure, void* stream, const TensorView* hidden,
                                    const TensorView* cache, const TensorView* rows, const TensorView* mask,
                                    const TensorView* dst, const TensorView* error_word) {
  return guarded(failure, [&] {
    nosync::gather_scatter_sconv(NEEDED(hidden), NEEDED(cache), NEEDED(rows), NEEDED(mask), NEEDED(dst),
                                 optional(error_word), stream);
  });
}

int32_t nosync_causal_conv1d(Failure* failure, void* stream, const TensorView* x, const TensorView* cache,
                             const TensorView* slot, const TensorView* mask, const TensorView* weight,
                             const TensorView* cu, const TensorView* seq, const TensorView* y, int32_t silu,
                             int32_t add_x, int32_t decode, const TensorView* error_word) {
  return guarded(failure, [&] {
    const nosync::Finish finish{silu != 0, add_x != 0};
    nosync::causal_conv1d(NEEDED(x), NEEDED(cache), NEEDED(slot), NEEDED(mask), NEEDED(weight), NEEDED(cu),
                          NEEDED(seq), NEEDED(y), finish, decode != 0, optional(error_word), stream);
  });
}

int32_t nosync_fused_decode_update(Failure* failure, void* stream, const TensorView* x, const TensorView* cache,
                                   const TensorView* cache_indices, const TensorView* mask, const TensorView* weight,
                                   const TensorView* y, int32_t silu, int32_t add_x, const TensorView* track_mask,
                                   const TensorView* track_slot, const TensorView* error_word) {
  return guarded(failure, [&] {
    const nosync::Finish finish{silu != 0, add_x != 0};
    nosync::fused_decode_update(NEEDED(x), NEEDED(cache), NEEDED(cache_indices), NEEDED(mask), NEEDED(weight),
                                NEEDED(y), finish, optional(track_mask), optional(track_slot), optional(error_word),
                                stream);
  });
}

int32_t nosync_ar_fused_decode(Failure* failure, void* stream, const TensorView* shards,
                               const TensorView* cache, const TensorView* cache_indices, const TensorView* mask,
                               const TensorView* weight, const TensorView* residual, const TensorView* norm_weight,
                               const TensorView* residual_out, const TensorView* hs_out, float eps, int32_t silu,
                               int32_t add_x, const TensorView* track_mask, const TensorView* track_slot,
                               const TensorView* error_word) {
  return guarded(failure, [&] {
    const nosync::Finish finish{silu != 0, add_x != 0};
    nosync::ar_fused_decode(NEEDED(shards), NEEDED(cache), NEEDED(cache_indices), NEEDED(mask), NEEDED(weight),
                            NEEDED(residual), NEEDED(norm_weight), NEEDED(residual_out), NEEDED(hs_out), eps, finish,
                            optional(track_mask), optional(track_slot), optional(error_word), stream);
  });
}

int32_t nosync_ar_fused_verify(Failure* failure, void* stream, const TensorView* shards,
                               const TensorView* cache, const TensorView* cache_indices, const TensorView* mask,
                               const TensorView* weight, const TensorView* residual, const TensorView* norm_weight,
                               const TensorView* residual_out, const TensorView* hs_out, const TensorView* inter_out,
                               float eps, int32_t silu, int32_t add_x, const TensorView* error_word) {
  return guarded(failure, [&] {
    const nosync::Finish finish{silu != 0, add_x != 0};
    nosync::ar_fused_verify(NEEDED(shards), NEEDED(cache), NEEDED(cache_indices), NEEDED(mask), NEEDED(weight),
                            NEEDED(residual), NEEDED(norm_weight), NEEDED(residual_out), NEEDED(hs_out),
                            NEEDED(inter_out), eps, finish, optional(error_word), stream);
  });
}

}  // extern "C"

#undef NEEDED
