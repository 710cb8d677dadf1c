// Chains that no kernel needs, so that a test can ask what the matcher makes of them. `b` may be null.
#include <nosync/abi.hpp>
#include <nosync/match.hpp>

#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

using namespace nosync;

namespace {

using Chain = std::function<void(const TensorView&, const TensorView&)>;

const std::map<std::string, Chain>& chains() {
  static const std::map<std::string, Chain> all = {
      {"contiguous", [](auto& a, auto&) { Match(a, "a").shape({any, any, any}).verify(); }},
      {"literals", [](auto& a, auto&) { Match(a, "a").shape({any, 3, 4}).strides({any, 4, 1}).verify(); }},
      {"dense rows", [](auto& a, auto&) { Match(a, "a").shape({any, any, any}).strides({any, 4, 1}).verify(); }},
      {"free strides", [](auto& a, auto&) { Match(a, "a").shape({any, any, any}).strides({any, any, any}).verify(); }},
      {"short stride list", [](auto& a, auto&) { Match(a, "a").shape({any, any, any}).strides({any, 1}).verify(); }},
      {"shared size",
       [](auto& a, auto& b) {
         Size rows("N");
         Match(a, "a").shape({rows, any, any}).strides({any, any, any}).verify();
         Match(b, "b").shape({any, rows}).strides({any, any}).verify();
       }},
      {"shared stride",
       [](auto& a, auto& b) {
         Size step("step");
         Match(a, "a").shape({any, any, any}).strides({step, any, any}).verify();
         Match(b, "b").shape({any, any}).strides({step, any}).verify();
       }},
      {"preset size",
       [](auto& a, auto&) {
         Size rows("N", 5);
         Match(a, "a").shape({rows, any, any}).strides({any, any, any}).verify();
       }},
      {"bounded sizes",
       [](auto& a, auto&) {
         Size rows = Size("N").between(1, 4), columns = Size("D").multiple_of(2);
         Match(a, "a").shape({rows, any, columns}).strides({any, any, any}).verify();
       }},
      {"two types", [](auto& a, auto&) { Match(a, "a").shape({any, any, any}).dtype({BF16, F32}).verify(); }},
      {"boolean", [](auto& a, auto&) { Match(a, "a").shape({any, any, any}).dtype({BOOL}).verify(); }},
      {"shared type",
       [](auto& a, auto& b) {
         TypeSymbol type("T");
         Match(a, "a").shape({any, any, any}).dtype(type).verify();
         Match(b, "b").shape({any, any}).dtype(type).verify();
       }},
      {"restricted device",
       [](auto& a, auto&) {
         Device device("device", {CUDA});
         Match(a, "a").shape({any, any, any}).device(device).verify();
       }},
      {"narrowed device",
       [](auto& a, auto&) {
         Device device("device", {CPU, CUDA});
         Match(a, "a").shape({any, any, any}).device(device, {CUDA}).verify();
       }},
      {"impossible device",
       [](auto& a, auto&) {
         Device device("device", {CUDA});
         Match(a, "a").shape({any, any, any}).device(device, {CPU}).verify();
       }},
      {"second device only",
       [](auto& a, auto&) {
         Device device("device", {CUDA});
         Match(a, "a").shape({any, any, any}).device(device, {{2, 1}}).verify();
       }},
      {"shared device",
       [](auto& a, auto& b) {
         Device device("device");
         Match(a, "a").shape({any, any, any}).device(device).verify();
         Match(b, "b").shape({any, any}).device(device).verify();
       }},
      {"aligned",
       [](auto& a, auto&) { Match(a, "a").shape({any, any, any}).strides({any, any, any}).align(8).verify(); }},
      {"no overlap",
       [](auto& a, auto&) {
         Match(a, "a").shape({any, any, any}).strides({any, any, any}).no_self_overlap().verify();
       }},
      {"grid", [](auto& a, auto&) { Match(a, "a").shape({any, any, any}).range_u16_grid(0).verify(); }},
      {"apart",
       [](auto& a, auto& b) {
         Match(a, "a").shape({any, any, any}).strides({any, any, any}).disjoint_from(b, "b").verify();
       }},
      {"same or apart",
       [](auto& a, auto& b) {
         Match(a, "a").shape({any, any, any}).strides({any, any, any}).same_or_disjoint_from(b, "b").verify();
       }},
      {"everything",
       [](auto& a, auto& b) {
         Device device("device", {CPU});
         Match(a, "a")
             .shape({any, 3, any})
             .strides({any, any, 1})
             .dtype({BF16})
             .device(device)
             .align(8)
             .no_self_overlap()
             .disjoint_from(b, "b")
             .verify();
       }},
  };
  return all;
}

}  // namespace

extern "C" int32_t probe(Failure* failure, const char* chain, const TensorView* a, const TensorView* b) {
  return guarded(failure, [&] {
    const auto found = chains().find(chain);
    if (found == chains().end()) throw std::invalid_argument(std::string("no chain ") + chain);
    found->second(*a, b == nullptr ? *a : *b);
  });
}

// The predicate itself.
extern "C" int32_t apart(const TensorView* a, const TensorView* b) { return disjoint(*a, *b) ? 1 : 0; }
