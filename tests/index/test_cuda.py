"""What `index` reads from C++ and CUDA files."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time

import pytest

from nosync_lint.index.cuda import index_cuda
from nosync_lint.index.cuda_macros import blank_macros
from nosync_lint.index.cuda_records import OPAQUE, CudaFunction, Matcher
from nosync_lint.index.records import rows_of

DEEP = 5_000


def only_function(text: str) -> CudaFunction:
    (function,) = index_cuda(text).functions
    return function


def only_matcher(statement: str) -> Matcher:
    (matcher,) = only_function(f"void f(TensorView x, TensorView y) {{\n  {statement}\n}}\n").matchers
    return matcher


def test_a_matcher_chain_is_read_with_its_arguments() -> None:
    matcher = only_matcher(
        "TensorMatcher({-1, W, D}).with_strides({-1, S, 1}).with_dtype<T>().with_device(d).verify(x).verify(y);"
    )
    assert matcher.name == "TensorMatcher"
    assert matcher.shape == ("-1", "W", "D")
    assert matcher.strides == ("-1", "S", "1")
    assert matcher.dtypes == ("T",)
    assert matcher.device
    assert [argument.name for argument in matcher.arguments] == ["x", "y"]


def test_a_matcher_without_a_stride_list_and_dtype_says_so() -> None:
    matcher = only_matcher("TensorMatcher({-1}).verify(x);")
    assert matcher.strides is None
    assert matcher.dtypes is None
    assert not matcher.device


def test_a_dtype_symbol_is_a_demand() -> None:
    assert only_matcher("TensorMatcher({-1}).with_dtype(kind).verify(x);").dtypes == ()


def test_any_class_of_that_shape_is_a_matcher() -> None:
    assert only_matcher("guard::Shaped({N, 4}).verify(x);").name == "Shaped"


def test_a_matcher_that_is_given_the_tensor_first_is_read() -> None:
    matcher = only_matcher('Match(x, "x").shape({N, 4}).strides({any, 1}).dtype({BF16}).device(dev);')
    assert (matcher.shape, matcher.strides, matcher.dtypes) == (("N", "4"), ("any", "1"), ("BF16",))
    assert matcher.arguments[0].name == "x"


def test_a_matcher_bound_to_a_variable_is_placed_where_it_is_made() -> None:
    matcher = only_matcher("auto m = TensorMatcher({N}).with_dtype<int>();\n  int other;\n  std::move(m).verify(x);")
    assert matcher.span.row == 2
    assert matcher.dtypes == ("int",)


def test_a_chain_over_several_lines_starts_where_its_class_stands() -> None:
    matcher = only_matcher("TensorMatcher({N})  // note\n      .with_dtype<int>()\n      .verify(x.value());")
    assert (matcher.span.row, matcher.span.column, matcher.span.end_row) == (2, 3, 4)
    assert matcher.arguments[0].name == "x"
    assert matcher.arguments[0].text == "x.value()"


def test_other_calls_in_a_chain_are_no_matchers() -> None:
    assert only_function("void f(T x) { Launcher(a, b).enable(true)(kernel, x); log({1}).verify(x); }").matchers == ()


def test_matchers_in_lambdas_and_branches_are_found() -> None:
    text = """
    void f(TensorView x, TensorView y) {
      auto check = [&](const TensorView& t) { TensorMatcher({4}).verify(t); };
      if constexpr (WIDE) { TensorMatcher({8}).verify(x); } else { TensorMatcher({2}).verify(x); }
    #ifdef ROCM
      TensorMatcher({3}).verify(y);
    #endif
    }"""
    assert sorted(matcher.shape[0] for matcher in only_function(text).matchers) == ["2", "3", "4", "8"]


def test_functions_know_class_template_and_tensors() -> None:
    text = """
    namespace a::b {
    template <int W, typename T>
    struct Kernel {
      static void run(const TensorView x, int64_t n, Optional<TensorView> bias, float* raw) { g(x); }
    };
    }"""
    function = only_function(text)
    assert (function.owner, function.name, function.template) == ("Kernel", "run", ("W", "T"))
    assert [parameter.name for parameter in function.tensors] == ["x", "bias"]
    assert [parameter.is_optional for parameter in function.tensors] == [False, True]
    assert function.parameters[3].type == "float*"
    assert not function.kernel


def test_kernels_are_told_from_host_functions() -> None:
    assert only_function(
        "__global__ __launch_bounds__(128, 2) void k(const __grid_constant__ P p) { p.x[0] = 1; }"
    ).kernel


def test_structs_keep_their_fields_in_order() -> None:
    (struct,) = index_cuda(
        "struct P : Base {\n const void* __restrict__ x; int64_t steps[2]; static int n; void f() {}\n};"
    ).structs
    assert [(field.name, field.type) for field in struct.fields] == [("x", "void*"), ("steps", "int64_t[]")]
    assert struct.bases == ("Base",)


def test_includes_constants_and_aliases_are_kept() -> None:
    index = index_cuda('#include <a/b.h>\n#include "c.cuh"\nconstexpr int N = 4;\nusing bf = __nv_bfloat16;\n')
    assert index.includes == ("a/b.h", "c.cuh")
    assert [(constant.name, constant.value) for constant in index.constants] == [("N", ("lit", "4"))]
    assert index.aliases == (("bf", "__nv_bfloat16"),)


def test_attribute_macros_are_blanked_in_place() -> None:
    text = (
        "#define OURS __global__ __launch_bounds__(32, 1)\nOURS void k(int a) { }\nSGL_DEVICE int g() { return 1; }\n"
    )
    blanked = blank_macros(text)
    assert len(blanked) == len(text)
    assert [len(line) for line in blanked.split("\n")] == [len(line) for line in text.split("\n")]
    index = index_cuda(text)
    assert [function.name for function in index.functions] == ["k", "g"]
    assert index.untrusted == ()


def test_a_call_of_a_macro_of_the_file_is_its_body() -> None:
    text = "#define GO(B) \\\n  kernel<<<1, B>>>(data)\nvoid f(float* data) { GO(64); }\n"
    function = only_function(text)
    assert len(function.lambdas) == 1
    assert function.lambdas[0].parameters[0].name == "B"
    assert any(step[0] == "do" and step[1][4] for step in function.lambdas[0].steps if step[1][0] == "call")


def test_what_lies_under_an_error_is_not_believed_but_counted() -> None:
    text = "void good(T x) { TensorMatcher({1}).verify(x); }\nvoid bad(T x) { auto y = @@ TensorMatcher({2}).verify(x) @@;\n}\n"
    index = index_cuda(text)
    assert index.untrusted
    assert [
        matcher.shape for function in index.functions for matcher in function.matchers if function.name == "good"
    ] == [("1",)]


def test_columns_count_code_points() -> None:
    function = only_function("void f(T x) {\n  /* é漢 */ TensorMatcher({1}).verify(x);\n}\n")
    assert function.matchers[0].span.column == len("  /* é漢 */ ") + 1


def test_pragmas_stand_after_two_slashes() -> None:
    text = "// nosync-lint: hot\nvoid f() {\n  g();  // nosync-lint: ignore[NSL603] scratch space\n}\n"
    hot, ignored = index_cuda(text).pragmas
    assert (hot.row, hot.form) == (1, "hot")
    assert (ignored.row, ignored.form, ignored.names) == (3, "ignore", ("NSL603",))


def test_an_index_holds_no_tree_and_survives_pickling() -> None:
    index = index_cuda(
        "struct P { int* x; };\nvoid f(T x) { TensorMatcher({1}).verify(x); k<<<1, 2>>>(P{x.data()}); }\n"
    )
    assert pickle.loads(pickle.dumps(index)) == index


def test_the_parser_is_not_imported_before_a_file_is_read() -> None:
    code = "import sys, nosync_lint.index.cuda, nosync_lint.link.kernels; sys.exit('tree_sitter' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


NESTED = {
    "parentheses": "int f() { return " + "(" * DEEP + "1" + ")" * DEEP + "; }",
    "blocks": "void f() " + "{" * DEEP + "}" * DEEP,
    "branches": "void f() {" + "if (a) {" * DEEP + "}" * DEEP + "}",
    "else-ifs": "void f() {" + "if (a) {} else " * DEEP + "{} }",
    "namespaces": "namespace a {" * DEEP + "}" * DEEP,
    "classes": "struct A {" * DEEP + "};" * DEEP,
    "lambdas": "void f() { auto x = " + "[&] { auto y = " * DEEP + "1" + ";}" * DEEP + "; }",
    "calls": "void f() {" + "g(" * DEEP + "1" + ")" * DEEP + "; }",
    "sums": "int f() { return " + "1 + " * DEEP + "1; }",
    "chains": "void f(T x) { TensorMatcher({1})" + ".verify(x)" * DEEP + "; }",
    "templates": "X<" * DEEP + "int" + ">" * DEEP + " a;",
    "directives": "#if A\n" * DEEP + "#endif\n" * DEEP,
    "macros": "#define A(x) B(x) A(x)\n#define B(x) A(x)\nvoid f() { A(1); }",
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED.keys())
def test_deep_nesting_costs_no_recursion(text: str) -> None:
    index_cuda(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0\0\0",
        "void f() {\0 x(\0); }",
        "\ufeffvoid f() {}",
        "// \udc80\n",
        "void f( {{{ ((",
        "#define " * 1000,
        "\r\n" * 1000,
    ],
)
def test_broken_text_gives_an_index(text: str) -> None:
    index_cuda(text)


def test_a_generated_table_is_read_in_seconds() -> None:
    start = time.perf_counter()
    index_cuda("const int table[] = {" + "1234," * 400_000 + "};")
    assert time.perf_counter() - start < 10


def test_opaque_is_what_carries_no_value() -> None:
    function = only_function("void f() { g(sizeof(int)); }")
    assert function.steps[0][1][2] == (OPAQUE,)


def test_short_strings_are_kept_and_long_ones_are_not() -> None:
    function = only_function(f'void f() {{ g("a" "b", "{"x" * 300}"); }}')
    assert function.steps[0][1][2] == (("text", "ab"), OPAQUE)


def test_device_functions_are_told_from_host_functions() -> None:
    text = "__device__ int a() { return 1; }\n__host__ __device__ int b() { return 1; }\nint c() { return 1; }\n"
    assert [function.device for function in index_cuda(text).functions] == [True, True, False]


def test_branches_of_conditions_are_guards() -> None:
    guards = index_cuda("void f() {\n  if (a) {\n    x();\n    return;\n  } else {\n    y();\n  }\n}\n").guards
    assert [(one.form, one.test, rows_of(one.pos), one.leaves) for one in guards] == [
        ("if", ("name", "a", ()), (2, 5), True),
        ("else", ("name", "a", ()), (5, 7), False),
    ]


def test_branches_of_the_preprocessor_are_guards_inside_and_outside_functions() -> None:
    text = "#ifdef A\nvoid f() {\n#if defined(B) && C\n  x();\n#else\n  y();\n#endif\n}\n#endif\n#ifndef D\nint g() { return 1; }\n#endif\n"
    guards = [(one.form, one.test[1], rows_of(one.pos)[0]) for one in index_cuda(text).guards]
    assert guards == [
        ("define", "A", 1),
        ("define", "defined(B) && C", 3),
        ("undefined", "defined(B) && C", 5),
        ("define", "!D", 10),
    ]


def test_an_initial_value_computed_once_is_guarded() -> None:
    (guard,) = index_cuda("void f() {\n  static int n = count();\n  int m = count();\n}\n").guards
    assert (guard.form, rows_of(guard.pos)) == ("static", (2, 2))


def test_a_macro_before_a_body_is_a_function_and_one_before_a_semicolon_is_a_call() -> None:
    index = index_cuda('PYBIND11_MODULE(ext, m) {\n  m.def("f", &f);\n}\nEXPORT(name, ns::g);\n')
    (block,) = index.functions
    assert [parameter.type for parameter in block.parameters] == ["ext", "m"]
    assert [(call[1][1], call[2]) for call in index.calls] == [
        ("EXPORT", (("name", "name", ()), ("name", "ns::g", ())))
    ]
