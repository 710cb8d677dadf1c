"""How matchers are read from C++ and CUDA functions."""

from __future__ import annotations

from nosync_lint.index.cuda import index_cuda
from nosync_lint.index.cuda_records import Matcher
from nosync_lint.index.records import row_of, span_of, unpack
from nosync_lint.link.kernel_matchers import KernelMatchers
from nosync_lint.link.kernel_sources import KernelSources, Place


def matchers_of(text: str, name: str = "f") -> tuple[Matcher, ...]:
    sources = KernelSources({"f.cuh": index_cuda(text)})
    (function,) = [one for one in sources.files["f.cuh"].functions if one.name == name]
    return KernelMatchers(sources).own(Place("f.cuh", function))


def only_matcher(statement: str) -> Matcher:
    (matcher,) = matchers_of(f"void f(TensorView x, TensorView y) {{\n  {statement}\n}}\n")
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
    assert row_of(matcher.pos) == 2
    assert matcher.dtypes == ("int",)


def test_a_chain_over_several_lines_starts_where_its_class_stands() -> None:
    matcher = only_matcher("TensorMatcher({N})  // note\n      .with_dtype<int>()\n      .verify(x.value());")
    row, column, end_row, _ = unpack(matcher.pos)
    assert (row, column + 1, end_row) == (2, 3, 4)
    assert matcher.arguments[0].name == "x"
    assert matcher.arguments[0].text == "x.value()"


def test_other_calls_in_a_chain_are_no_matchers() -> None:
    assert matchers_of("void f(T x) { Launcher(a, b).enable(true)(kernel, x); log({1}).verify(x); }") == ()


def test_matchers_in_lambdas_and_branches_are_found() -> None:
    text = """
    void f(TensorView x, TensorView y) {
      auto check = [&](const TensorView& t) { TensorMatcher({4}).verify(t); };
      if constexpr (WIDE) { TensorMatcher({8}).verify(x); } else { TensorMatcher({2}).verify(x); }
    #ifdef ROCM
      TensorMatcher({3}).verify(y);
    #endif
    }"""
    assert sorted(matcher.shape[0] for matcher in matchers_of(text)) == ["2", "3", "4", "8"]


def test_what_lies_under_an_error_is_not_believed_but_counted() -> None:
    text = "void good(T x) { TensorMatcher({1}).verify(x); }\nvoid bad(T x) { auto y = @@ TensorMatcher({2}).verify(x) @@;\n}\n"
    assert index_cuda(text).untrusted
    assert [matcher.shape for matcher in matchers_of(text, "good")] == [("1",)]


def test_columns_count_code_points() -> None:
    text = "void f(T x) {\n  /* é漢 */ TensorMatcher({1}).verify(x);\n}\n"
    (matcher,) = matchers_of(text)
    assert span_of(matcher.pos, text.split("\n")).column == len("  /* é漢 */ ") + 1
