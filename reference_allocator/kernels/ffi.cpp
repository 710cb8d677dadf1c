// The entries of the C ABI for callers of tvm-ffi: the same bodies, matchers and errors. Tensors come as DLPack views and
// None as an absent operand; the stream is the caller's current one on the device of the tensors. An entry returns None,
// or what `Failure` says of the exception. g++ builds this file for host memory, nvcc for device memory.

#include "host.cpp"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/string.h>

namespace {

namespace ffi = tvm::ffi;

// One argument of a C entry as tvm-ffi passes it, and for as long as the call lasts as the entry takes it.
template <class Argument>
struct Passed;

template <>
struct Passed<const TensorView*> {
  using Type = ffi::Optional<ffi::TensorView>;
  TensorView view{};
  bool given;

  explicit Passed(const Type& tensor) : given(tensor.has_value()) {
    if (!given) return;
    const ffi::TensorView& it = *tensor;
    const DLDataType type = it.dtype();
    view = {it.data_ptr(), it.ndim(), it.shape().data(), it.strides().data(), {type.code, type.bits, type.lanes},
            {it.device().device_type, it.device().device_id}, static_cast<uint64_t>(it.byte_offset())};
  }
  const TensorView* get() const { return given ? &view : nullptr; }
};

template <>
struct Passed<int64_t> {
  using Type = int64_t;
  int64_t value;
  explicit Passed(Type given) : value(given) {}
  int64_t get() const { return value; }
};

template <>
struct Passed<int32_t> {  // a flag
  using Type = bool;
  int32_t value;
  explicit Passed(Type given) : value(given ? 1 : 0) {}
  int32_t get() const { return value; }
};

template <>
struct Passed<float> {
  using Type = double;
  float value;
  explicit Passed(Type given) : value(static_cast<float>(given)) {}
  float get() const { return value; }
};

// The current stream on the device of the first operand that has one; null on the host.
void note_device(const Passed<const TensorView*>& operand, void*& stream) {
  if (stream == nullptr && operand.given && operand.view.device.type == nosync::CUDA.type) {
    stream = TVMFFIEnvGetStream(operand.view.device.type, operand.view.device.index);
  }
}
template <class Other>
void note_device(const Other&, void*&) {}

using Told = ffi::Optional<ffi::Array<ffi::Any>>;

Told told(int32_t outcome, const Failure& failure) {
  if (outcome == nosync::DONE) return std::nullopt;
  const auto text = [](const char* field) { return ffi::String(field); };
  return ffi::Array<ffi::Any>{outcome, failure.dim, text(failure.kind), text(failure.name), text(failure.symbol),
                              text(failure.expected), text(failure.got), text(failure.text)};
}

template <auto Entry, class Signature>
struct Exported;

template <auto Entry, class... Arguments>
struct Exported<Entry, int32_t (*)(Failure*, void*, Arguments...)> {
  static Told run(typename Passed<Arguments>::Type... given) { return with(Passed<Arguments>(given)...); }

  static Told with(const Passed<Arguments>&... passed) {
    void* stream = nullptr;
    (note_device(passed, stream), ...);
    Failure failure{};
    const int32_t outcome = Entry(&failure, stream, passed.get()...);
    return told(outcome, failure);
  }
};

template <auto Entry>
constexpr auto exported = &Exported<Entry, decltype(Entry)>::run;

}  // namespace

#define EXPORT(entry) TVM_FFI_DLL_EXPORT_TYPED_FUNC(entry, exported<&entry>)

EXPORT(nosync_update_sconv_cache);
EXPORT(nosync_draft_extend_sconv);
EXPORT(nosync_gather_scatter_sconv);
EXPORT(nosync_causal_conv1d);
EXPORT(nosync_fused_decode_update);
EXPORT(nosync_ar_fused_decode);
EXPORT(nosync_ar_fused_verify);

#undef EXPORT
