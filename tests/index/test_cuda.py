"""What `index` reads from C++ and CUDA files."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time

import pytest

from nosync_lint.index.cuda import index_cuda
from nosync_lint.index.cuda_macros import blank_macros
from nosync_lint.index.cuda_records import OPAQUE, CudaFunction
from nosync_lint.index.records import rows_of

DEEP = 5_000


def only_function(text: str) -> CudaFunction:
    (function,) = index_cuda(text).functions
    return function


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
