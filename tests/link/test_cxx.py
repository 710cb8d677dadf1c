"""Waits in C++ host code: what waits, where tensors live, and which Python call runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nosync_lint.link.cxx_models import CxxModels, load_place, loaded, rows
from nosync_lint.link.cxx_waits import macro_words
from nosync_lint.report import Report

Lint = Callable[..., Report]
HEAD = "#include <torch/extension.h>\n"


def told(report: Report, heat: str | None = None) -> list[tuple[str, int, str]]:
    """File, row and confidence of the findings, or of those of one heat."""
    return [
        (one.filename, one.span.row, one.confidence.value)
        for one in report.findings
        if one.code == "NSL611" and (heat is None or one.heat == heat)
    ]


def of_body(lint: Lint, body: str, parameters: str = "at::Tensor x") -> list[str]:
    """The confidences of the findings in a C++ function that is a hot root, by row."""
    text = f"{HEAD}// nosync-lint: hot\nvoid f({parameters}) {{\n{body}\n}}\n"
    report = lint({"a.cu": text}, select=("NSL611",), heat="any", min_confidence="possible")
    return [one.confidence.value for one in report.findings]


WAITS = {
    "device": ("cudaDeviceSynchronize();", "certain"),
    "qualified": ("c10::cuda::device_synchronize();", "certain"),
    "of the driver": ("cuStreamSynchronize(s);", "certain"),
    "of HIP": ("hipDeviceSynchronize();", "certain"),
    "inside a check": ("CUDA_CHECK(cudaEventSynchronize(e));", "certain"),
    "in a condition": ("if (cudaStreamSynchronize(s) != cudaSuccess) return;", "certain"),
    "method of a stream": ("at::cuda::getCurrentCUDAStream().synchronize();", "certain"),
    "method of something": ("x_.synchronize();", "possible"),
    "blocking copy": ("cudaMemcpy(a, b, n, cudaMemcpyDeviceToHost);", "certain"),
    "symbol": ("cudaMemcpyToSymbol(table, b, n);", "certain"),
    "copy into a local": ("int n; cudaMemcpyAsync(&n, b, 4, cudaMemcpyDeviceToHost, s);", "certain"),
    "copy into a vector": (
        "std::vector<int> v(4); cudaMemcpyAsync(v.data(), b, 4, cudaMemcpyDeviceToHost, s);", "certain",
    ),
    "item": ("x.item<int>();", "likely"),
    "item of a view": ("x.view({-1})[0].sum().item();", "likely"),
    "item of a checked tensor": ("TORCH_CHECK(x.is_cuda());\nx.item<int>();", "certain"),
    "item of a new tensor": ("auto y = at::zeros({1}, at::kCUDA);\ny.item();", "certain"),
    "item of an optional": ("c10::optional<at::Tensor> y = x; y.value().item<int>();", "likely"),
    "item of a member": ("self.lengths.item<int>();", "possible"),
    "host copy": ("auto y = x.cpu();", "likely"),
    "host copy by device": ("x.to(at::Device(at::kCPU));", "likely"),
    "host copy by name": ('x.to("cpu");', "likely"),
    "host copy by options": ("x.to(x.options().device(torch::kCPU));", "likely"),
    "host copy into a tensor": ("auto y = at::empty({4}); y.copy_(x);", "likely"),
    "upload": ("auto y = at::empty({4}); y.to(at::kCUDA);", "certain"),
    "upload by `cuda`": ("at::arange(4).cuda();", "certain"),
    "upload with a flag that is not a literal": ("at::arange(4).to(x.device(), async);", "possible"),
    "counted": ("at::nonzero(x);", "likely"),
    "method that counts": ("x.masked_select(x);", "likely"),
    "thrust": ("thrust::reduce(thrust::cuda::par.on(s), a, b);", "likely"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "confidence"), WAITS.values(), ids=WAITS.keys())
def test_a_call_waits(lint: Lint, body: str, confidence: str) -> None:
    assert of_body(lint, body) == [confidence]


SILENT = {
    "stream order": "cudaStreamWaitEvent(a, e, 0);",
    "event query": "cudaEventQuery(e);",
    "asynchronous copy": "cudaMemcpyAsync(a, b, n, cudaMemcpyDeviceToHost, s);",
    "copy into a pointer": "int* n = buffer(); cudaMemcpyAsync(&n[0], b, 4, cudaMemcpyDeviceToHost, s);",
    "upload of a local": "int n = 1; cudaMemcpyAsync(a, &n, 4, cudaMemcpyHostToDevice, s);",
    "copy on the device": "cudaMemcpy(a, b, n, cudaMemcpyDeviceToDevice);",
    "asynchronous free": "cudaFreeAsync(a, s);",
    "initialisation": "cudaFree(0);",
    "item of a host tensor": "auto y = at::zeros({1}); y.item<int>();",
    "item after a host copy that is told": "TORCH_CHECK(x.is_cpu()); x.item<int>();",
    "item of something else": "auto n = queue.item(3);",
    "host check by macro": "CHECK_CPU(x); x.item<int>();",
    "host check by type": "TORCH_CHECK(x.device().type() == at::kCPU); x.item<int>();",
    "only a dtype": "x.to(at::kFloat);",
    "dtype and pinned flag": "x.to(at::kFloat, /*non_blocking=*/true);",
    "asynchronous upload": "at::arange(4).to(at::kCUDA, /*non_blocking=*/true);",
    "asynchronous upload with a dtype": "at::arange(4).to(at::kCUDA, at::kInt, true);",
    "sizes": "auto n = x.size(0) + x.numel() + x.stride(1);",
    "pointers": "x.data_ptr<float>(); x.const_data_ptr();",
    "host tensor of data": "torch::tensor({1, 2});",
    "one number": "at::full({}, 1, x.options());",
}


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT.keys())
def test_a_call_does_not_wait(lint: Lint, body: str) -> None:
    assert of_body(lint, body) == []


BRANCHES = {
    "host branch": ("if (x.is_cpu()) { x.item<int>(); }", []),
    "other branch": ("if (x.is_cuda()) { g(); } else { x.item<int>(); }", []),
    "after leaving": ("if (x.is_cuda()) { return; }\nx.item<int>();", []),
    "after leaving for the host": ("if (!x.is_cuda()) {\n  return;\n}\nx.item<int>();", ["certain"]),
    "device branch": ("if (x.is_cuda()) {\n  x.item<int>();\n}", ["certain"]),
    "redefined in one branch": ("if (y) {\n  x = x.cpu();\n}\nx.item<int>();", ["likely", "likely"]),
    "redefined in the other branch": ("if (y) {\n  x = at::zeros({1});\n} else {\n  x.item<int>();\n}", ["likely"]),
    "debugging": ("if (debug) { cudaDeviceSynchronize(); }", []),
    "not debugging": ("if (!debug) { cudaDeviceSynchronize(); }", ["certain"]),
    "environment": ('if (std::getenv("A") != nullptr) cudaDeviceSynchronize();', []),
    "debug build": ("#ifdef DEBUG\ncudaDeviceSynchronize();\n#endif", []),
    "release build": ("#ifdef NDEBUG\ncudaDeviceSynchronize();\n#endif", ["certain"]),
    "not a release build": ("#if !defined(NDEBUG)\ncudaDeviceSynchronize();\n#endif", []),
    "another platform": (
        "#ifdef USE_ROCM\nhipDeviceSynchronize();\n#else\ncudaDeviceSynchronize();\n#endif",
        ["certain"],
    ),
    "once": ("static int n = cudaDeviceSynchronize();", []),
}


@pytest.mark.parametrize(("body", "confidences"), BRANCHES.values(), ids=BRANCHES.keys())
def test_branches_count(lint: Lint, body: str, confidences: list[str]) -> None:
    assert of_body(lint, body) == confidences


@pytest.mark.parametrize(
    ("condition", "holds", "words"),
    [
        ("A", True, ["A"]),
        ("A", False, ["!A"]),
        ("!A", False, ["A"]),
        ("defined(A) && !defined(B)", True, ["A", "!B"]),
        ("A >= 2 || B", True, ["A", "B"]),
    ],
)
def test_the_words_of_a_preprocessor_condition(condition: str, holds: bool, words: list[str]) -> None:
    assert macro_words(condition, holds) == words


CALLED = """
#include <torch/extension.h>
static int64_t read(const at::Tensor& t) { return t.item<int64_t>(); }
int64_t both(const at::Tensor& a, const at::Tensor& b) { return read(a.sum()); }
int64_t host(const at::Tensor& a) { return read(a.cpu()); }
"""


def test_a_wait_is_followed_through_calls_with_their_arguments(lint: Lint) -> None:
    text = CALLED + 'PYBIND11_MODULE(ext, m) { m.def("both", &both); m.def("host", &host); }\n'
    python = """
    import torch, ext
    def step(d: torch.Tensor):  # nosync-lint: hot
        d, h = d.cuda(non_blocking=True), torch.zeros(4)
        ext.both(d, h)
        ext.both(h, d)
        ext.both(b=h, a=d)
        ext.host(d)
        ext.host(h)
    """
    report = lint({"a.cpp": text, "main.py": python}, select=("NSL611",))
    assert [row for name, row, _ in told(report) if name == "main.py"] == [5, 7, 8]
    assert [row for name, row, _ in told(report) if name == "a.cpp"] == [3, 5]
    (line,) = [one for one in report.findings if one.filename == "a.cpp" and one.span.row == 3]
    assert [(hop.filename, hop.row, hop.note) for hop in line.flow] == [
        ("main.py", 3, "hot root `step` (marked hot)"),
        ("main.py", 5, "calls `ext.both` of C++"),
        ("a.cpp", 4, "calls `read`"),
        ("a.cpp", 3, "synchronises here"),
    ]
    assert line.root == "main.step"
    call = next(one for one in report.findings if one.filename == "main.py")
    assert [(hop.filename, hop.row) for hop in call.related] == [("a.cpp", 4), ("a.cpp", 3)]


REGISTERED = {
    "pybind": ('PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f, "doc"); }', "load", "ops.f(x)"),
    "pybind by a cast": (
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", py::overload_cast<at::Tensor>(&f)); }', "load", "ops.f(x)",
    ),
    "pybind under another name": (
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("g", torch::wrap_pybind_function(f)); }', "load", "ops.g(x)",
    ),
    "lambda": (
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("g", [](at::Tensor t) { return f(t); }); }', "load", "ops.g(x)",
    ),
    "named module": ('PYBIND11_MODULE(fast, m) { m.def("f", &f); }', "import fast as ops", "ops.f(x)"),
    "library": ('TORCH_LIBRARY(ns, m) { m.def("f(Tensor x) -> int", &f); }', "", "torch.ops.ns.f(x)"),
    "overload": ('TORCH_LIBRARY(ns, m) { m.def("f(Tensor x) -> int", &f); }', "", "torch.ops.ns.f.default(x)"),
    "implementation": ('TORCH_LIBRARY_IMPL(ns, CUDA, m) { m.impl("f", TORCH_FN(f)); }', "", "torch.ops.ns.f(x)"),
    "implementation with a key": (
        'TORCH_LIBRARY_FRAGMENT(ns, m) { m.impl("f", torch::kCUDA, &f); }', "", "torch.ops.ns.f(x)",
    ),
    "namespace of the build": (
        'TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, m) { m.impl("f", torch::kCUDA, &f); }', "", "torch.ops.any.f(x)",
    ),
    "kept op": ('TORCH_LIBRARY(ns, m) { m.def("f", &f); }', "op = torch.ops.ns.f", "op(x)"),
    "symbol": ("TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, f);", "import tvm_ffi\nops = tvm_ffi.cpp.load(name='a', cpp_files=['a.cpp'])", "ops.run(x)"),
    "loaded in a function": (
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }',
        "from functools import lru_cache\n@lru_cache\ndef ops():\n    return load(name='a', sources=['a.cpp'])",
        "ops().f(x)",
    ),
    "listed functions": (
        "", "from torch.utils.cpp_extension import load_inline\n"
        "ops = load_inline(name='a', cpp_sources=[open('a.cpp').read()], functions=['f'])", "ops.f(x)",
    ),
    "method of a class": (
        'struct Pool { int64_t f(at::Tensor t) { return t.item<int64_t>(); } };\n'
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { py::class_<Pool>(m, "Pool").def(py::init<>()).def("take", &Pool::f); }',
        "load", "ops.Pool().take(x)",
    ),
}  # fmt: skip
LOAD = "ops = load(name='a', sources=['a.cpp'])"
FUNCTION = HEAD + "int64_t f(at::Tensor t) { return t.item<int64_t>(); }\n"


def calling(before: str, call: str) -> str:
    return (
        "import torch\nfrom torch.utils.cpp_extension import load\n"
        f"{LOAD if before == 'load' else before}\n"
        "def step(x: torch.Tensor):  # nosync-lint: hot\n    x = x.cuda(non_blocking=True)\n"
        f"    return {call}\n"
    )


@pytest.mark.parametrize(("registration", "before", "call"), REGISTERED.values(), ids=REGISTERED.keys())
def test_python_reaches_a_function(lint: Lint, registration: str, before: str, call: str) -> None:
    files = {"a.cpp": FUNCTION + registration + "\n", "main.py": calling(before, call)}
    report = lint(files, select=("NSL611",))
    assert [name for name, _, _ in told(report, "hot")] == ["a.cpp", "main.py"]


APART = {
    "another name": ('PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }', "load", "ops.other(x)"),
    "another library": ('TORCH_LIBRARY(ns, m) { m.def("f", &f); }', "", "torch.ops.mine.f(x)"),
    "another key": ('TORCH_LIBRARY_IMPL(ns, CPU, m) { m.impl("f", &f); }', "", "torch.ops.ns.f(x)"),
    "a schema alone": ('TORCH_LIBRARY(ns, m) { m.def("f(Tensor x) -> int"); }', "", "torch.ops.ns.f(x)"),
    "a module of somebody else": (
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }', "import numpy as ops", "ops.f(x)",
    ),
    "another extension": (
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }', "ops = load('b', ['b.cpp'])", "ops.f(x)",
    ),
    "not registered": ("", "load", "ops.f(x)"),
}  # fmt: skip


@pytest.mark.parametrize(("registration", "before", "call"), APART.values(), ids=APART.keys())
def test_python_does_not_reach_a_function(lint: Lint, registration: str, before: str, call: str) -> None:
    files = {"a.cpp": FUNCTION + registration + "\n", "b.cpp": HEAD, "main.py": calling(before, call)}
    assert told(lint(files, select=("NSL611",))) == []


def test_equal_names_of_two_extensions_are_told_apart_by_their_sources(lint: Lint) -> None:
    module = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }\n'
    waiting = HEAD + "int64_t forward(at::Tensor t) { return t.item<int64_t>(); }\n" + module
    quiet = HEAD + "int64_t forward(at::Tensor t) { return t.numel(); }\n" + module
    python = """
    import torch
    from torch.utils.cpp_extension import load
    a = load(name="a", sources=["a.cpp"])
    b = load(name="b", sources=["b.cpp"])
    def step(x: torch.Tensor):  # nosync-lint: hot
        x = x.cuda(non_blocking=True)
        return a.forward(x) + b.forward(x)
    """
    report = lint({"a.cpp": waiting, "b.cpp": quiet, "main.py": python}, select=("NSL611",))
    assert [(one.filename, one.span.column) for one in report.findings] == [("a.cpp", 40), ("main.py", 12)]


def test_a_root_of_c_plus_plus_is_given_by_name(lint: Lint) -> None:
    files = {"a.cpp": FUNCTION}
    assert told(lint(files, select=("NSL611",), hot=("f",))) == [("a.cpp", 2, "likely")]
    assert told(lint(files, select=("NSL611",), hot=("g",))) == []
    assert told(lint(files, select=("NSL611",), heat="any", min_confidence="possible")) == [("a.cpp", 2, "possible")]


def test_a_root_of_c_plus_plus_that_is_configured_is_known(lint: Lint) -> None:
    files = {"a.cpp": FUNCTION, "nosync-lint.toml": 'hot = ["f", "g"]\n'}
    assert [one.message for one in lint(files, select=("NSL003",)).findings] == [
        "hot root `g` names nothing in this project"
    ]


def test_a_function_that_runs_rarely_stops_heat(lint: Lint) -> None:
    text = (
        HEAD
        + "{mark}int {name}(at::Tensor t) {{ return t.item<int>(); }}\nint f(at::Tensor t) {{ return {name}(t); }}\n"
    )
    for mark, name, heat in (("", "once", "hot"), ("// nosync-lint: cold\n", "once", "cold"), ("", "warmup", "cold")):
        files = {"a.cpp": text.format(mark=mark, name=name)}
        report = lint(files, select=("NSL611",), hot=("f",), heat="any", min_confidence="possible")
        assert [one.heat for one in report.findings] == [heat]


def test_recursion_and_overloads_end(lint: Lint) -> None:
    text = HEAD + "// nosync-lint: hot\nint f(at::Tensor t) { return g(t) + f(t); }\n"
    text += "int g(at::Tensor t) { return f(t) + t.item<int>(); }\nint g(at::Tensor t, int n) { return g(t); }\n"
    assert told(lint({"a.cpp": text}, select=("NSL611",))) == [("a.cpp", 4, "likely")]


def test_the_answer_does_not_depend_on_the_order_of_functions(lint: Lint) -> None:
    one = "int f(at::Tensor t) { return g(t); }\n"
    other = "int g(at::Tensor t) { return t.item<int>(); }\n"
    for text in (one + other, other + one):
        report = lint({"a.cpp": HEAD + text}, select=("NSL611",), hot=("f",))
        assert [finding.confidence.value for finding in report.findings] == ["likely"]


def test_a_name_of_a_loaded_module_is_read_back() -> None:
    name = loaded("cpp_extension.load", 3, 77)
    assert load_place(name + ".Pool.take") == ("cpp_extension.load", 3, 77, "Pool.take")
    assert load_place("package._C.take") is None


def test_every_row_tells_its_source_and_a_cure() -> None:
    assert [row["id"] for row in rows() if not row["source"] or not row["cure"]] == []
    assert len({row["id"] for row in rows()}) == len(rows())


def test_rows_are_found_by_the_end_of_a_qualified_name() -> None:
    models: Any = CxxModels()
    assert [model.id for model in models.of_function("c10::cuda::stream_synchronize")] == ["cxx.stream_synchronize"]
    assert models.of_function("mine::stream_synchronize") == []
    assert models.of_function("cudaStreamSynchronize")
