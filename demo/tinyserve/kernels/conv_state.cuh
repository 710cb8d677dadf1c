// Shifts the state of a short causal convolution by one token, for the requests of a decode step.
#pragma once

#include <tinyserve/launch.h>
#include <tinyserve/match.h>

#include <cstdint>

namespace tinyserve {

struct ShiftParams {
  const void* input;   // [requests, channels]
  void* state;         // [slots, WIDTH, channels], a view of the shared pool
  const void* slots;   // [requests]
  int64_t input_step;
  int64_t slot_step;
  int64_t row_step;
  uint32_t channels;
};

template <int WIDTH, typename T>
__global__ void shift_state_kernel(const __grid_constant__ ShiftParams p) {
  const uint32_t channel = blockIdx.x * blockDim.x + threadIdx.x;
  if (channel >= p.channels) return;
  const int64_t slot = static_cast<const int32_t*>(p.slots)[blockIdx.y];
  const auto* input = static_cast<const T*>(p.input);
  auto* state = static_cast<T*>(p.state) + slot * p.slot_step + channel;
#pragma unroll
  for (int row = 0; row + 1 < WIDTH; ++row) {
    state[row * p.row_step] = state[(row + 1) * p.row_step];
  }
  state[(WIDTH - 1) * p.row_step] = input[blockIdx.y * p.input_step + channel];
}

template <int WIDTH, typename T>
struct ShiftState {
  static void run(TensorView input, TensorView state, TensorView slots) {
    auto requests = SymbolicSize{"requests"};
    auto channels = SymbolicSize{"channels"};
    auto device = SymbolicDevice{};
    TensorMatcher({requests, channels}).with_strides({-1, 1}).with_dtype<T>().with_device(device).verify(input);
    TensorMatcher({-1, WIDTH, channels}).with_dtype<T>().with_device(device).verify(state);
    TensorMatcher({requests}).with_dtype<int32_t>().with_device(device).verify(slots);
    const auto params = ShiftParams{
        .input = input.data_ptr(),
        .state = state.data_ptr(),
        .slots = slots.data_ptr(),
        .input_step = input.stride(0),
        .slot_step = state.stride(0),
        .row_step = state.stride(1),
        .channels = static_cast<uint32_t>(channels.unwrap()),
    };
    constexpr auto kernel = shift_state_kernel<WIDTH, T>;
    const auto blocks = dim3((params.channels + 127) / 128, static_cast<uint32_t>(requests.unwrap()));
    LaunchKernel(blocks, 128, device.unwrap())(kernel, params);
  }
};

}  // namespace tinyserve
