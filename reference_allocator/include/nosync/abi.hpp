// How a C function reports a C++ exception: a return code, and a record that the caller reads.
#pragma once

#include <nosync/match.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

namespace nosync {

enum Outcome : int32_t { DONE = 0, MISMATCH = 1, BAD_ARGUMENT = 2, LAUNCH_FAILED = 3 };

// Mirrored by `Failure` in abi.py. Texts are cut to fit and end in a zero; `dim` is -1 where there is none.
struct Failure {
  int32_t dim;
  char kind[16];
  char name[32];
  char symbol[32];
  char expected[160];
  char got[160];
  char text[640];
};

template <size_t N>
void put(char (&field)[N], const std::string& text) {
  std::snprintf(field, N, "%s", text.c_str());
}

// Runs `call`. Nothing is thrown across the C boundary, and nothing waits for a kernel.
template <class Call>
int32_t guarded(Failure* failure, Call&& call) noexcept {
  try {
    call();
  } catch (const Mismatch& mismatch) {
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

}  // namespace nosync
