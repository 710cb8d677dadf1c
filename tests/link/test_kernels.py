"""What `link` answers about matchers and the kernels behind them."""

from __future__ import annotations

import pytest

from nosync_lint.index.cuda import index_cuda
from nosync_lint.link.kernels import Kernels, MatchContract, census_rank

BODY = """
struct P { float* ring; int64_t step; int64_t row; };
__global__ void k(const __grid_constant__ P p) { p.ring[blockIdx.x * p.step + threadIdx.x] = 0; }
"""


def link(*texts: str, **named: str) -> Kernels:
    files = {f"f{i}.cuh": text for i, text in enumerate(texts)}
    files.update({name.replace("__", "/") + ".cuh": text for name, text in named.items()})
    return Kernels({path: index_cuda(text) for path, text in files.items()})


def contract(kernels: Kernels, argument: str = "ring") -> MatchContract:
    (found,) = [each for each in kernels.contracts() if each.argument == argument]
    return found


def used(kernels: Kernels) -> list[int]:
    return [use.dimension for use in contract(kernels).strides]


def host(
    launch: str, matcher: str = "TensorMatcher({-1, 64}).with_dtype<float>().verify(ring);", before: str = ""
) -> str:
    return f"{BODY}{before}\nvoid run(TensorView ring) {{\n  {matcher}\n  {launch}\n}}\n"


LAUNCHES = {
    "designated": "P p{.ring = (float*)ring.data_ptr(), .step = ring.stride(0)}; LaunchKernel(1, 1, 0)(k, p);",
    "positional": "const auto p = P{static_cast<float*>(ring.data_ptr()), ring.stride(0)}; LaunchKernel(1, 1, 0)(k, p);",
    "assigned": "P p; p.ring = static_cast<float*>(ring.data_ptr()); p.step = ring.stride(0); k<<<1, 1>>>(p);",
    "through a local": "auto s = static_cast<int>(ring.stride(0)) * 4; k<<<1, 1>>>(P{(float*)ring.data_ptr(), s});",
    "negative index": "k<<<1, 1>>>(P{(float*)ring.data_ptr(), ring.stride(-2)});",
    "strides()": "k<<<1, 1>>>(P{(float*)ring.data_ptr(), ring.strides()[0]});",
    "one of two": "k<<<1, 1>>>(P{(float*)ring.data_ptr(), wide ? ring.stride(0) : 64});",
    "kernel variable": "constexpr auto kern = k; LaunchKernel(1, 1, 0).enable_pdl(true)(kern, P{(float*)ring.data_ptr(), ring.stride(0)});",
    "launch function": "cudaLaunchKernelEx(&config, k, P{(float*)ring.data_ptr(), ring.stride(0)});",
    "lambda": "auto go = [&](int64_t s) { k<<<1, 1>>>(P{(float*)ring.data_ptr(), s}); }; go(ring.stride(0));",
    "lambda to unknown code": "dispatch(n, [&] { k<<<1, 1>>>(P{(float*)ring.data_ptr(), ring.stride(0)}); });",
}


@pytest.mark.parametrize("launch", LAUNCHES.values(), ids=LAUNCHES.keys())
def test_a_stride_is_followed_into_the_kernel(launch: str) -> None:
    assert used(link(host(launch))) == [0]


BODIES = {
    "subscript": "p.ring[p.step * 2] = 0;",
    "pointer sum": "auto* row = p.ring + p.step; *row = 0;",
    "advanced pointer": "auto* row = p.ring; row += p.step; *row = 0;",
    "address of": "*reinterpret_cast<float4*>(&p.ring[p.step]) = z;",
    "local": "const int s = static_cast<int>(p.step); const int64_t base = s * 3; p.ring[base] = 0;",
    "binding": "const auto& [ring, step, row] = p; ring[step] = 0;",
    "loop": "int64_t at = 0; for (int i = 0; i < 4; ++i) { p.ring[at] = 0; at += p.step; }",
    "helper": "store(p.ring, p.step);",
    "lambda": "auto put = [&](int64_t at) { p.ring[at] = 0; }; put(p.step);",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_an_address_computation_in_the_body_is_recognised(body: str) -> None:
    text = f"""
    struct P {{ float* ring; int64_t step; int64_t row; }};
    __device__ void store(void* base, int64_t at) {{ static_cast<float*>(base)[at] = 0; }}
    __global__ void k(const P p) {{ {body} }}
    void run(TensorView ring) {{
      TensorMatcher({{-1, 64}}).verify(ring);
      k<<<1, 1>>>(P{{(float*)ring.data_ptr(), ring.stride(0), 0}});
    }}"""
    assert used(link(text)) == [0]


PROGRAMS = {
    "method of a member": """
    struct Rows { float* base; int64_t pitch; __device__ float* at(int64_t i) const { return base + i * pitch; } };
    struct Q { Rows rows; };
    __global__ void k(const Q q) { *q.rows.at(blockIdx.x) = 0; }
    void run(TensorView ring) {
      TensorMatcher({-1, 64}).verify(ring);
      const auto rows = Rows{.base = (float*)ring.data_ptr(), .pitch = ring.stride(0)};
      k<<<1, 1>>>({.rows = rows});
    }""",
    "struct made by a function": """
    struct Q { float* ring; int64_t step; };
    Q make(const TensorView& t) { return {(float*)t.data_ptr(), t.stride(0)}; }
    __global__ void k(const Q q) { q.ring[q.step] = 0; }
    void run(TensorView ring) { TensorMatcher({-1, 64}).verify(ring); k<<<1, 1>>>(make(ring)); }""",
    "offsets in a parameter pack": """
    template <typename... U> __device__ void* offset(void* p, U... by) { return static_cast<char*>(p) + (... + by); }
    __global__ void k(void* ring, int64_t step) { auto* x = offset(ring, 4, blockIdx.x * step); }
    void run(TensorView ring) { TensorMatcher({-1, 64}).verify(ring); k<<<1, 1>>>(ring.data_ptr(), ring.stride(0)); }""",
    "kernels as members, one of two": """
    template <int N> __global__ void ka(float* ring, int64_t step) { ring[N] = 0; }
    template <int N> __global__ void kb(float* ring, int64_t step) { ring[step] = 0; }
    template <int N> struct Host {
      static constexpr auto small = ka<N>;
      static constexpr auto large = &kb<N>;
      static void run(TensorView ring) {
        TensorMatcher({-1, 64}).verify(ring);
        const auto kernel = N > 4 ? large : small;
        LaunchKernel(1, 1, 0)(kernel, (float*)ring.data_ptr(), ring.stride(0));
      }
    };""",
    "inherited members and an alias": """
    struct Base { float* ring; int64_t step; };
    struct Wide : Base { int extra; };
    using Params = Wide;
    __global__ void k(Params p) { p.ring[p.step] = 0; }
    void run(TensorView ring) {
      TensorMatcher({-1, 64}).verify(ring);
      Params p; p.ring = (float*)ring.data_ptr(); p.step = ring.stride(0);
      k<<<1, 1>>>(p);
    }""",
    "constructor call and typedef": """
    typedef struct { float* ring; int64_t step; } Q;
    __global__ void k(Q q) { q.ring[q.step] = 0; }
    void run(TensorView ring) {
      TensorMatcher({-1, 64}).verify(ring);
      Q made(static_cast<float*>(ring.data_ptr()), std::move(ring.stride(0)));
      k<<<1, 1>>>(Q(static_cast<float*>(ring.data_ptr()), ring.stride(0)));
    }""",
    "loop over tensors": """
    __global__ void k(float* ring, int64_t step) { ring[step] = 0; }
    void run(TensorView ring) {
      TensorMatcher({-1, 64}).verify(ring);
      for (const auto& each : {ring, ring}) { k<<<1, 1>>>((float*)each.data_ptr(), each.stride(0)); }
    }""",
    "member defined outside its class": """
    struct Host { int64_t n; void run(TensorView ring); template <int N> void go(float* p, int64_t s); };
    __global__ void k(float* ring, int64_t step) { ring[step] = 0; }
    template <int N> void Host::go(float* p, int64_t s) { switch (N) { case 1: k<<<1, 1>>>(p, s); break; default: return; } }
    void Host::run(TensorView ring) {
      TensorMatcher({-1, 64}).verify(ring);
      this->template go<1>((float*)ring.data_ptr(), ring.stride(0));
    }""",
    "array of steps": """
    struct Q { float* ring; int64_t steps[2]; };
    __global__ void k(const Q q) { q.ring[q.steps[0]] = 0; }
    void run(TensorView ring) {
      TensorMatcher({-1, 64}).verify(ring);
      int64_t local[2]; local[0] = ring.stride(0);
      const Q q{.ring = (float*)ring.data_ptr(), .steps = {local[0], 1}};
      k<<<1, 1>>>(q);
    }""",
    "views with plain members": """
    struct View { void* data; const int64_t* strides; };
    __global__ void k(float* ring, int64_t step) { ring[step] = 0; }
    void run(View ring) {
      Match(ring, "ring").shape({any, 64}).dtype({F32});
      k<<<1, 1>>>((float*)ring.data, ring.strides[0]);
    }""",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_stride_is_followed_through_the_program(text: str) -> None:
    assert used(link(text)) == [0]


SILENT = {
    "compared": "if (p.step == 64) p.ring[0] = 0;",
    "unused": "p.ring[0] = 0;",
}


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT.keys())
def test_a_stride_that_is_only_checked_is_no_use(body: str) -> None:
    text = f"""
    struct P {{ float* ring; int64_t step; }};
    __global__ void k(const P p) {{ {body} }}
    void run(TensorView ring) {{
      TensorMatcher({{-1, 64}}).verify(ring);
      RuntimeCheck(ring.stride(0) == 64);
      k<<<1, 1>>>(P{{(float*)ring.data_ptr(), ring.stride(0)}});
    }}"""
    assert used(link(text)) == []


def test_what_is_loaded_is_not_the_index_it_was_loaded_by() -> None:
    text = """
    __global__ void k(float* ring, const int* table, int64_t step) { ring[table[step]] = 0; }
    void run(TensorView ring, TensorView table) {
      TensorMatcher({-1, 64}).verify(ring);
      TensorMatcher({-1}).verify(table);
      k<<<1, 1>>>((float*)ring.data_ptr(), (const int*)table.data_ptr(), table.stride(0));
    }"""
    kernels = link(text)
    assert [use.dimension for use in contract(kernels, "table").strides] == [0]
    assert used(kernels) == []


def test_a_body_in_an_included_header_is_found_and_others_are_not() -> None:
    call = "k<<<1, 1>>>(P{(float*)ring.data_ptr(), ring.stride(0)});"
    text = f"void run(TensorView ring) {{ TensorMatcher({{-1, 64}}).verify(ring); {call} }}"
    assert used(link(a__kern=BODY, b__host="#include <a/kern.cuh>\n" + text)) == [0]
    assert used(link(a__kern=BODY, b__host='#include "../a/kern.cuh"\n' + text)) == [0]
    assert used(link(a__kern=BODY, b__host=text)) == []


def test_hops_lead_from_the_stride_to_the_address() -> None:
    kernels = link(a__kern=BODY, host='#include "a/kern.cuh"\n' + host(LAUNCHES["designated"]).replace(BODY, ""))
    first, last = contract(kernels).strides[0].hops
    assert (first.filename, first.row) == ("host.cuh", 5)
    assert (last.filename, last.row) == ("a/kern.cuh", 3)
    assert "p.step" in first.note


def test_names_do_not_matter() -> None:
    plain = host(LAUNCHES["designated"])
    renamed = plain.replace("ring", "zz").replace("step", "qq").replace("P{", "R{").replace(" P ", " R ")
    renamed = renamed.replace("P p", "R p").replace("const __grid_constant__ P", "const R")
    assert [use.dimension for use in contract(link(renamed), "zz").strides] == used(link(plain)) == [0]


CHECKS = {
    "runtime check": "RuntimeCheck(ring.stride(1) == 1, note);",
    "from the end": "TORCH_CHECK(ring.stride(-1) == 1);",
    "conjunction": "CHECK_HOST(n > 0 && 1 == ring.stride(1)) << note;",
    "macro with two sides": "TVM_FFI_ICHECK_EQ(ring.stride(-1), 1) << note;",
    "throw": "if (n < 0 || ring.stride(1) != 1) { throw Error(note); }",
    "panic": "if (ring.stride(1) != 1) Panic(note);",
    "local": "const auto s = ring.stride(1); RuntimeCheck(s == 1);",
    "helper": "check_dense(ring);",
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS.keys())
def test_an_explicit_check_pins_a_stride(check: str) -> None:
    matcher = "TensorMatcher({-1, 64}).with_strides({-1, -1}).verify(ring);"
    helper = "void check_dense(const TensorView& t) { RuntimeCheck(t.stride(1) == 1); }"
    checked = contract(link(host(check + LAUNCHES["designated"], matcher, helper)))
    assert checked.checked == {1}
    assert checked.assumed_dense() == ()
    assert contract(link(host(LAUNCHES["designated"], matcher, helper))).assumed_dense() == (1,)


def test_a_check_of_a_remainder_pins_nothing() -> None:
    matcher = "TensorMatcher({-1, 64}).with_strides({-1, -1}).verify(ring);"
    text = host("RuntimeCheck(ring.stride(1) % 4 == 0);" + LAUNCHES["designated"], matcher)
    assert contract(link(text)).assumed_dense() == (1,)


def test_a_contiguity_check_pins_every_stride() -> None:
    matcher = "TensorMatcher({-1, 64}).with_strides({-1, -1}).verify(ring);"
    assert contract(link(host("RuntimeCheck(ring.is_contiguous());" + LAUNCHES["designated"], matcher))).dense


def test_a_stride_given_to_unknown_code_is_not_called_unused() -> None:
    matcher = "TensorMatcher({-1, 64}).with_strides({-1, -1}).verify(ring);"
    text = host("auto layout = make_layout(ring.stride(1));" + LAUNCHES["designated"], matcher)
    assert contract(link(text)).assumed_dense() == ()


def test_a_symbol_stands_for_the_stride_it_was_matched_with() -> None:
    before = 'auto s = SymbolicSize{"step"}; TensorMatcher({-1, 64}).with_strides({s, 1}).verify(ring);'
    launch = "k<<<1, 1>>>(P{(float*)ring.data_ptr(), s.unwrap()});"
    found = contract(link(host(launch, before)))
    assert found.demanded == (None, "1")
    assert [use.dimension for use in found.strides] == [0]
    assert contract(link(host(launch, before.replace("; Tensor", "; s.set_value(64); Tensor")))).checked == {0}


def test_a_constant_in_a_stride_list_is_a_demand() -> None:
    matcher = "constexpr int kRow = 64; TensorMatcher({-1, 64}).with_strides({kRow, 1}).verify(ring);"
    assert contract(link(host(LAUNCHES["designated"], matcher))).demanded == ("kRow", "1")


def test_the_element_type_comes_from_the_body() -> None:
    text = """
    struct P { const void* mask; };
    template <typename T> __global__ void k(const P p) {
      bool a = static_cast<const bool*>(p.mask)[0];
      T b = static_cast<const T*>(p.mask)[0]; uint8_t c = static_cast<const uint8_t*>(p.mask)[0];
      float4 d = *reinterpret_cast<const float4*>(p.mask);
    }
    void run(TensorView ring) { TensorMatcher({4}).verify(ring); k<T><<<1, 1>>>(P{ring.data_ptr()}); }"""
    assert [read.type for read in contract(link(text)).reads] == ["bool"]


@pytest.mark.parametrize(
    "check", ["RuntimeCheck(is_type<bool>(ring.dtype()))", "TORCH_CHECK(ring.scalar_type() == at::kBool)"]
)
def test_a_dtype_check_counts(check: str) -> None:
    assert contract(link(host(check + ";" + LAUNCHES["designated"]))).dtype_checked


UNMATCHED = """
__global__ void k(float* a, float* b) { a[0] = b[0]; }
void helper(const TensorView& t) { TensorMatcher({1}).verify(t); }
void run(TensorView a, {kind} b) {
  TensorMatcher({1}).verify(a);
  {check}
  k<<<1, 1>>>((float*)a.data_ptr(), {use});
}
"""


def unmatched(check: str = "", use: str = "(float*)b.data_ptr()", kind: str = "TensorView") -> list[list[str]]:
    text = UNMATCHED.replace("{check}", check).replace("{use}", use).replace("{kind}", kind)
    return [
        [name for name, _ in found.arguments] for found in link(text).unmatched_arguments() if found.function == "run"
    ]


def test_a_tensor_that_is_not_matched_is_named() -> None:
    assert unmatched() == [["b"]]
    assert unmatched(use="WIDE ? (float*)b.data_ptr() : nullptr") == [["b"]]


@pytest.mark.parametrize(
    "check",
    [
        "helper(b);",
        "TensorMatcher({1}).verify(b);",
        "if (n) { const auto& c = b; TensorMatcher({1}).verify(c); }",
        "TORCH_CHECK(b.scalar_type() == at::kFloat);",
        "RuntimeCheck(b.size(0) == 1); RuntimeCheck(b.is_contiguous());",
    ],
)
def test_a_tensor_matched_elsewhere_or_checked_is_not(check: str) -> None:
    assert unmatched(check) == []


def test_a_check_of_one_stride_is_no_match() -> None:
    assert unmatched("RuntimeCheck(b.stride(0) == 1);") == [["b"]]


def test_a_tensor_whose_data_stays_on_the_host_is_not_unmatched() -> None:
    assert unmatched("auto n = b.size(0);", use="nullptr") == []


def test_an_optional_tensor_is_marked() -> None:
    text = (
        UNMATCHED.replace("{check}", "")
        .replace("{use}", "(float*)b.value().data_ptr()")
        .replace("{kind}", "Optional<TensorView>")
    )
    (found,) = link(text).unmatched_arguments()
    assert found.optional


def test_the_census_counts_pairs_by_file_and_rank() -> None:
    text = "void f(T a, T b) { TensorMatcher({1}).verify(a).verify(b); TensorMatcher({1, 2, 3}).verify(a); }"
    kernels = link(kernels__a=text, kernels__deep__b=text, other__c=text)
    assert kernels.census("kernels/**/*.cuh").total == 6
    assert kernels.census("kernels/**/*.cuh", "rank=3").files == (("kernels/a.cuh", 1), ("kernels/deep/b.cuh", 1))
    assert kernels.census("kernels/*.cuh").files == (("kernels/a.cuh", 3),)
    assert kernels.census("nothing/*.cuh").total == 0


def test_an_unknown_census_condition_names_the_known_one() -> None:
    assert census_rank(" rank = 3 ") == 3
    with pytest.raises(ValueError, match="rank=3"):
        census_rank("colour=red")


def test_recursion_between_functions_ends() -> None:
    text = "void f(T a) { g(a); } void g(T a) { TensorMatcher({1}).verify(a); f(a); }"
    assert [found.function for found in link(text).contracts()] == ["f", "g"]  # `f` matches by `g`


@pytest.mark.parametrize(
    "steps",
    [
        "P p{}; " + "p.n = p; " * 3000,
        "auto x0 = P{ring}; " + "".join(f"auto x{i + 1} = P{{x{i}, x{i}}}; " for i in range(300)),
        "".join(f"auto l{i + 1} = [&](auto a) {{ return l{i}(l{i}(a)); }}; " for i in range(60)) + "l60(ring);",
    ],
    ids=["self-reference", "doubling", "lambdas"],
)
def test_values_that_grow_are_bounded(steps: str) -> None:
    assert len(link(f"void run(T ring) {{ TensorMatcher({{1}}).verify(ring); {steps} }}").contracts()) == 1


def test_a_long_call_chain_ends_without_recursion() -> None:
    chain = "".join(f"void f{i}(T x) {{ f{i + 1}(x); }}" for i in range(3000))
    assert link(chain + "void run(T ring) { TensorMatcher({1}).verify(ring); f0(ring); }").contracts()


def test_the_order_of_files_changes_nothing() -> None:
    texts = {"a.cuh": BODY, "b.cuh": '#include "a.cuh"\n' + host(LAUNCHES["designated"]).replace(BODY, "")}
    forward = Kernels({path: index_cuda(text) for path, text in texts.items()})
    backward = Kernels({path: index_cuda(texts[path]) for path in reversed(texts)})
    assert forward.contracts() == backward.contracts()


def test_regions_that_did_not_parse_are_counted() -> None:
    assert link("void f() { auto x = @@ 1; }").untrusted()[0][0] == "f0.cuh"
