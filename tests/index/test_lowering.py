"""What the index keeps of Python code."""

from __future__ import annotations

import pickle
import textwrap

import pytest

from nosync_lint.index.python import index_python
from nosync_lint.index.records import FunctionRecord, ModuleIndex, span_of, unpack
from nosync_lint.source import Span, UnreadableFile


def read(text: str) -> ModuleIndex:
    return index_python(textwrap.dedent(text))


def body(text: str) -> FunctionRecord:
    """The record of the first function of a module."""
    return read(text).functions[1]


def test_a_negative_number_is_a_constant() -> None:
    module = read("a = -1\nb = -2.5\nc = -x\nd = --1\n").functions[0]
    values = {name: found[0].value for name, found in module.definitions.items()}
    assert values == {
        "a": ("const", -1), "b": ("const", -2.5), "c": ("unary", "-", ("name", "x")), "d": ("const", 1),
    }  # fmt: skip


def test_an_index_write_keeps_target_index_and_value() -> None:
    (write,) = read("t[i, 1:] = -1\n").functions[0].writes
    base, index, value, op = write[:4]
    assert base == ("name", "t")
    assert index == ("tuple", (("name", "i"), ("slice", ("const", 1), ("const", None), ("const", None))))
    assert (value, op) == (("const", -1), None)


def test_chained_and_unpacked_targets_are_writes_of_their_own() -> None:
    writes = read("a[i] = b[j] = 0\nc[k], x = 1, 2\n").functions[0].writes
    assert [(write[0][1], write[2]) for write in writes] == [
        ("a", ("const", 0)), ("b", ("const", 0)), ("c", ("item", ("tuple", (("const", 1), ("const", 2))), 0)),
    ]  # fmt: skip


def test_an_augmented_store_keeps_its_operator() -> None:
    (write,) = read("t[i] += 1\n").functions[0].writes
    assert write[3] == "+"


def test_places_are_those_of_the_target_and_of_the_statement() -> None:
    text = "if x:\n    table[\n        rows\n    ] = (\n        0)\n"
    (write,) = read(text).functions[0].writes
    assert unpack(write.pos) == (2, 4, 4, 5)
    assert unpack(write.statement) == (2, 4, 5, 10)


def test_columns_are_counted_in_code_points() -> None:
    text = 'x = "äöü"; t[i] = 0\n'
    (write,) = read(text).functions[0].writes
    assert span_of(write.pos, text.split("\n")) == Span(1, 12, 1, 16)


def test_parameters_keep_their_forms_annotations_and_defaults() -> None:
    record = body("def f(a, /, b: int = 1, *rest, c=None, **more): pass\n")
    assert [(p.name, p.form) for p in record.parameters] == [
        ("a", "only"), ("b", "positional"), ("rest", "args"), ("c", "keyword"), ("more", "kwargs"),
    ]  # fmt: skip
    assert record.parameters[1].annotation == ("name", "int")
    assert [p.default for p in record.parameters] == [None, ("const", 1), None, ("const", None), None]


def test_functions_know_where_they_are_defined() -> None:
    index = read(
        """
        class A:
            def m(self):
                def inner(): pass
                return lambda: 0
            class B:
                def n(self): pass
        """
    )
    named = {record.qualname: record for record in index.functions}
    assert set(named) == {"", "A", "A.m", "A.m.<locals>.inner", "A.m.<lambda>", "A.B", "A.B.n"}
    assert named["A.m"].owner == 0
    assert named["A.B.n"].owner == 1
    assert named["A.m.<locals>.inner"].owner == -1
    assert index.functions[named["A.m.<locals>.inner"].parent].qualname == "A.m"


def test_classes_keep_bases_methods_and_the_last_definition_of_each() -> None:
    (record,) = read(
        """
        class A(B, pkg.C[int], metaclass=M):
            def m(self): return 1
            def m(self): return 2
            x = 3
        """
    ).classes
    assert record.bases[0] == ("name", "B")
    assert record.bases[1][0] == "sub"
    assert record.keywords == (("metaclass", ("name", "M")),)
    assert list(record.methods) == ["m"]
    assert len(record.methods["m"]) == 2


FLAGS = {
    "def f(): ...": {"stub"},
    "def f():\n    'doc'\n    raise NotImplementedError": {"stub"},
    "def f():\n    'doc'": {"stub"},
    "def f():\n    return 1": set(),
    "async def f():\n    return 1": {"async"},
    "def f():\n    yield 1": {"generator"},
    "@abstractmethod\ndef f(): ...": {"stub", "abstract"},
    "@abc.abstractmethod\ndef f():\n    return 1": {"abstract"},
}


@pytest.mark.parametrize("text", FLAGS)
def test_a_function_is_flagged(text: str) -> None:
    assert body(text).flags == FLAGS[text]


def test_results_are_what_is_returned_and_yielded() -> None:
    record = body("def f():\n    yield 1\n    yield from g()\n    return 2\n")
    assert [found.value[0] for found in record.results] == ["const", "elem", "const"]


def test_attribute_writes_are_kept_with_their_annotation() -> None:
    record = body("def f(self):\n    self.a = 1\n    self.b.c: int = 2\n    self.d: int\n")
    assert [(write.name, write.annotation) for write in record.attributes] == [
        ("a", None), ("c", ("name", "int")), ("d", ("name", "int")),
    ]  # fmt: skip


def test_imports_are_definitions() -> None:
    index = read("import a.b\nimport a.b as c\nfrom d import e as f\nfrom . import g\nfrom ..h import *\n")
    found = {name: values[0].value for name, values in index.functions[0].definitions.items()}
    assert found == {
        "a": ("import", "a", None, 0), "c": ("import", "a.b", None, 0),
        "f": ("import", "d", "e", 0), "g": ("import", "", "g", 1),
    }  # fmt: skip
    assert index.star_imports == (("h", 2),)


def test_a_comprehension_variable_is_not_the_local_of_the_same_name() -> None:
    record = body("def f(x):\n    y = [x for x in x]\n    return x\n")
    (name,) = [name for name in record.definitions if name.startswith("x")]
    assert name.startswith("x~")
    assert record.results[0].value == ("name", "x")


def test_annotations_in_quotes_are_read_and_never_count_as_calls() -> None:
    record = body("def f(a: 'torch.Tensor | None', b: Annotated[int, g()]) -> 'list[int]': pass\n")
    assert record.parameters[0].annotation == ("bin", "|", ("attr", ("name", "torch"), "Tensor"), ("const", None))
    assert record.returns is not None
    assert record.returns[0] == "sub"
    assert record.calls == ()


def test_calls_are_kept_wherever_they_stand() -> None:
    text = """
    def f(x):
        with a() as y, b():
            for z in c():
                while d():
                    e(g(h()))
        try:
            i()
        except E as error:
            k()
        finally:
            l()
        assert m(), n()
        del o()[p()]
        raise q() from r()
        return (s() if t() else u()) or [v() for w in x if y()]
    """
    called = {site.call[1][1] for site in body(text).calls}
    assert called == set("abcdeghiklmnopqrstuvy")


def test_match_statements_define_what_they_capture() -> None:
    record = body(
        """
        def f(x):
            match g(x):
                case [a, *b] if h(a):
                    return a
                case {'k': c, **d}:
                    return d
        """
    )
    assert set(record.definitions) == {"a", "b", "c", "d"}
    assert {site.call[1][1] for site in record.calls} == {"g", "h"}


def test_reads_are_the_names_read_anywhere_in_a_function() -> None:
    record = body("def f(a, b, c, d):\n    a = 1\n    def g(): return b\n    return [c for _ in ()]\n")
    assert {"b", "c"} <= record.reads
    assert {"a", "d"} & record.reads == set()


def test_truth_tests_and_index_reads_are_sites() -> None:
    record = body(
        "def f(a, b):\n    if a: pass\n    while not b: pass\n    assert a and b\n    return a[b], a[0], f'{a}'\n"
    )
    forms = sorted(site.form for site in record.sites)
    assert forms.count("read") == 1  # an int index reads nothing back
    assert forms.count("format") == 1
    assert forms.count("test") >= 4


def test_facts_depend_on_the_text_alone_and_survive_pickling() -> None:
    text = "class A:\n    def m(self, x): self.t[x] = -1  # noqa: NSL101\n"
    assert pickle.loads(pickle.dumps(read(text))) == read(text)


def test_a_file_that_is_no_python_is_unreadable_at_its_row() -> None:
    with pytest.raises(UnreadableFile, match="cannot be parsed as Python") as raised:
        read("x = 1\ny = = 2\n")
    assert raised.value.row == 2


@pytest.mark.parametrize(
    "text",
    ["x = " + "-" * 5000 + "1", "x = " + "(" * 5000 + ")" * 5000, "x" + ".a" * 5000, "x = " + "[" * 150 + "]" * 150],
    ids=["minus", "brackets", "attributes", "a few brackets"],
)
def test_deep_nesting_is_opaque_or_unreadable_and_never_a_crash(text: str) -> None:
    try:
        index_python(text)
    except UnreadableFile as error:
        assert "too deeply" in error.reason or "too many nested" in error.reason or "cannot be parsed" in error.reason  # noqa: PT017


def test_a_chain_of_a_thousand_branches_is_no_nesting() -> None:
    text = "def f(x):\n    if x == 0: return 0\n" + "".join(f"    elif x == {i}: return {i}\n" for i in range(1, 1000))
    assert len(body(text).results) == 1000


def test_warnings_of_the_parser_are_not_ours() -> None:
    assert index_python('x = "\\d"\ny = 1 is 1\n').functions[0].definitions.keys() == {"x", "y"}


def test_an_empty_file_has_a_module_body() -> None:
    index = index_python("")
    assert [record.form for record in index.functions] == ["module"]
    assert index.classes == ()
