// The C ABI of the conv-state kernels. Operands arrive as `TensorView` records, an absent one as a null pointer; every
// exception becomes a return code and a `nosync_failure` that the caller reads. g++ builds this file as it is, for host
// memory; dev.cu builds it with nvcc, for device memory: then every entry queues one kernel on `stream` and returns
// without waiting.

#include "ar_fused_decode.cuh"
#include "causal_conv1d.cuh"
#include "draft_extend_sconv.cuh"
#include "fused_decode_update.cuh"
#include "gather_scatter_sconv.cuh"
#include "update_sconv_cache.cuh"

#include <nosync/operands.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>

namespace {

using nosync::TensorView;

enum Outcome : int32_t { DONE = 0, MISMATCH = 1, BAD_ARGUMENT = 2, LAUNCH_FAILED = 3 };

std::optional<TensorView> given(const TensorView* operand) {
  return operand == nullptr ? std::nullopt : std::optional<TensorView>(*operand);
}

}  // namespace

// Mirrored by `_Failure` in abi.py. Texts are cut to fit and end in a zero.
struct nosync_failure {
  int32_t dim;
  char kind[16];
  char name[32];
  char symbol[32];
  char expected[160];
  char got[160];
  char text[640];
};

namespace {

template <size_t N>
void put(char (&field)[N], const std::string& text) {
  std::snprintf(field, N, "%s", text.c_str());
}

template <class Call>
int32_t guarded(nosync_failure* failure, Call&& call) noexcept {
  try {
    call();
  } catch (const nosync::Mismatch& mismatch) {
    failure->dim = mismatch.dim;
    put(failure->kind, mismatch.kind);
    put(failure->name, mismatch.name);
    put(failure->symbol, mismatch.symbol);
    put(failure->expected, mismatch.expected);
    put(failure->got, mismatch.got);
    put(failure->text, mismatch.text);
    return MISMATCH;
  } catch (const std::exception& error) {
    put(failure->text, error.what());
    return BAD_ARGUMENT;
  }
#ifdef __CUDACC__
  const cudaError_t launched = cudaGetLastError();  // of this launch; does not wait for the kernel
  if (launched != cudaSuccess) {
    put(failure->text, cudaGetErrorString(launched));
    return LAUNCH_FAILED;
  }
#endif
  return DONE;
}

}  // namespace

extern "C" {

int32_t nosync_update_sconv_cache(nosync_failure* failure, void* stream, const TensorView* x, const TensorView* cache,
                                  const TensorView* cache_indices, const TensorView* has_state,
                                  const TensorView* query_start, const TensorView* error_word) {
  return guarded(failure, [&] {
    nosync::update_sconv_cache(*x, *cache, *cache_indices, *has_state, *query_start, given(error_word), stream);
  });
}

int32_t nosync_draft_extend_sconv(nosync_failure* failure, void* stream, const TensorView* hidden,
                                  const TensorView* cache, const TensorView* cache_indices, const TensorView* accepted,
                                  int64_t draft, const TensorView* crossed, const TensorView* track_step,
                                  const TensorView* track_slot, const TensorView* error_word) {
  return guarded(failure, [&] {
    nosync::draft_extend_sconv(*hidden, *cache, *cache_indices, *accepted, draft, given(crossed), given(track_step),
                               given(track_slot), given(error_word), stream);
  });
}

int32_t nosync_gather_scatter_sconv(nosync_failure* failure, void* stream, const TensorView* hidden,
                                    const TensorView* cache, const TensorView* rows, const TensorView* mask,
                                    const TensorView* dst, const TensorView* error_word) {
  return guarded(failure, [&] {
    nosync::gather_scatter_sconv(*hidden, *cache, *rows, *mask, *dst, given(error_word), stream);
  });
}

int32_t nosync_causal_conv1d(nosync_failure* failure, void* stream, const TensorView* x, const TensorView* cache,
                             const TensorView* slot, const TensorView* mask, const TensorView* weight,
                             const TensorView* cu, const TensorView* seq, const TensorView* y, int32_t silu,
                             int32_t add_x, int32_t decode, const TensorView* error_word) {
  return guarded(failure, [&] {
    const nosync::Finish finish{silu != 0, add_x != 0};
    nosync::causal_conv1d(*x, *cache, *slot, *mask, *weight, *cu, *seq, *y, finish, decode != 0, given(error_word),
                          stream);
  });
}

int32_t nosync_fused_decode_update(nosync_failure* failure, void* stream, const TensorView* x, const TensorView* cache,
                                   const TensorView* cache_indices, const TensorView* mask, const TensorView* weight,
                                   const TensorView* y, int32_t silu, int32_t add_x, const TensorView* track_mask,
                                   const TensorView* track_slot, const TensorView* error_word) {
  return guarded(failure, [&] {
    const nosync::Finish finish{silu != 0, add_x != 0};
    nosync::fused_decode_update(*x, *cache, *cache_indices, *mask, *weight, *y, finish, given(track_mask),
                                given(track_slot), given(error_word), stream);
  });
}

int32_t nosync_ar_fused_decode(nosync_failure* failure, void* stream, const TensorView* shards,
                               const TensorView* cache, const TensorView* cache_indices, const TensorView* mask,
                               const TensorView* weight, const TensorView* residual, const TensorView* norm_weight,
                               const TensorView* residual_out, const TensorView* hs_out, float eps, int32_t silu,
                               int32_t add_x, const TensorView* track_mask, const TensorView* track_slot,
                               const TensorView* error_word) {
  return guarded(failure, [&] {
    const nosync::Finish finish{silu != 0, add_x != 0};
    nosync::ar_fused_decode(*shards, *cache, *cache_indices, *mask, *weight, *residual, *norm_weight, *residual_out,
                            *hs_out, eps, finish, given(track_mask), given(track_slot), given(error_word), stream);
  });
}

int32_t nosync_ar_fused_verify(nosync_failure* failure, void* stream, const TensorView* shards,
                               const TensorView* cache, const TensorView* cache_indices, const TensorView* mask,
                               const TensorView* weight, const TensorView* residual, const TensorView* norm_weight,
                               const TensorView* residual_out, const TensorView* hs_out, const TensorView* inter_out,
                               float eps, int32_t silu, int32_t add_x, const TensorView* error_word) {
  return guarded(failure, [&] {
    const nosync::Finish finish{silu != 0, add_x != 0};
    nosync::ar_fused_verify(*shards, *cache, *cache_indices, *mask, *weight, *residual, *norm_weight, *residual_out,
                            *hs_out, *inter_out, eps, finish, given(error_word), stream);
  });
}

}  // extern "C"
