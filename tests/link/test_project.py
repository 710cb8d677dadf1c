"""Names across files: imports, re-exports, aliases, packages, classes and their order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

Link = Callable[..., Any]

TARGET = "def g():\n    return 7\n"
USE = "def use():\n    reveal(g())\n"
DOTTED = "def use():\n    reveal({}())\n"

LAYOUTS: dict[str, Mapping[str, str]] = {
    "from a module": {"lib.py": TARGET, "main.py": "from lib import g\n" + USE},
    "from a package": {"pkg/__init__.py": "", "pkg/lib.py": TARGET, "main.py": "from pkg.lib import g\n" + USE},
    "by the module": {"lib.py": TARGET, "main.py": "import lib\n" + DOTTED.format("lib.g")},
    "by a dotted module": {
        "pkg/__init__.py": "",
        "pkg/lib.py": TARGET,
        "main.py": "import pkg.lib\n" + DOTTED.format("pkg.lib.g"),
    },
    "by an alias of the module": {
        "pkg/__init__.py": "",
        "pkg/lib.py": TARGET,
        "main.py": "import pkg.lib as l\n" + DOTTED.format("l.g"),
    },
    "by an alias of the name": {"lib.py": TARGET, "main.py": "from lib import g as h\n" + DOTTED.format("h")},
    "a module from a package": {
        "pkg/__init__.py": "",
        "pkg/lib.py": TARGET,
        "main.py": "from pkg import lib\n" + DOTTED.format("lib.g"),
    },
    "relative": {"pkg/__init__.py": "", "pkg/lib.py": TARGET, "pkg/main.py": "from .lib import g\n" + USE},
    "relative module": {
        "pkg/__init__.py": "",
        "pkg/lib.py": TARGET,
        "pkg/main.py": "from . import lib\n" + DOTTED.format("lib.g"),
    },
    "relative to the package above": {
        "pkg/__init__.py": "",
        "pkg/lib.py": TARGET,
        "pkg/sub/__init__.py": "",
        "pkg/sub/main.py": "from ..lib import g\n" + USE,
    },
    "relative from an initialiser": {"pkg/__init__.py": "from .lib import g\n" + USE, "pkg/lib.py": TARGET},
    "re-exported": {
        "pkg/__init__.py": "from .lib import g\n",
        "pkg/lib.py": TARGET,
        "main.py": "from pkg import g\n" + USE,
    },
    "re-exported twice under other names": {
        "pkg/__init__.py": "from .mid import h as i\n",
        "pkg/mid.py": "from .lib import g as h\n",
        "pkg/lib.py": TARGET,
        "main.py": "from pkg import i as g\n" + USE,
    },
    "by a star": {"lib.py": TARGET, "main.py": "from lib import *\n" + USE},
    "by a star of a star": {"lib.py": TARGET, "mid.py": "from lib import *\n", "main.py": "from mid import *\n" + USE},
    "by a relative star": {
        "pkg/__init__.py": "from .lib import *\n",
        "pkg/lib.py": TARGET,
        "main.py": "import pkg\n" + DOTTED.format("pkg.g"),
    },
    "assigned another name": {"lib.py": TARGET + "h = g\n", "main.py": "from lib import h\n" + DOTTED.format("h")},
    "in a namespace package": {"outer/inner/lib.py": TARGET, "main.py": "from outer.inner.lib import g\n" + USE},
    "in a namespace folder of a package": {
        "pkg/__init__.py": "",
        "pkg/ns/lib.py": TARGET,
        "main.py": "from pkg.ns.lib import g\n" + USE,
    },
    "below src": {"src/pkg/__init__.py": "", "src/pkg/lib.py": TARGET, "main.py": "from pkg.lib import g\n" + USE},
    "below src without initialisers": {"src/pkg/lib.py": TARGET, "main.py": "from pkg.lib import g\n" + USE},
    "beside the importer": {"scripts/lib.py": TARGET, "scripts/main.py": "from lib import g\n" + USE},
    "imported in the function": {"lib.py": TARGET, "main.py": "def use():\n    from lib import g\n    reveal(g())\n"},
    "in a try": {"lib.py": TARGET, "main.py": "try:\n    from lib import g\nexcept ImportError:\n    g = None\n" + USE},
    "external first": {
        "lib.py": TARGET,
        "main.py": "try:\n    from fastlib import g\nexcept ImportError:\n    from lib import g\n" + USE,
    },
    "in a cycle of imports": {"a.py": "from b import g\n" + USE, "b.py": "from a import use\n" + TARGET},
    "a submodule imported elsewhere": {
        "pkg/__init__.py": "",
        "pkg/lib.py": TARGET,
        "main.py": "import pkg\n" + DOTTED.format("pkg.lib.g"),
    },
}


@pytest.mark.parametrize("folder", ["src", "lib", "python"])
def test_link_follows_an_import_that_names_the_source_folder(link: Link, folder: str) -> None:
    assert link({f"{folder}/core.py": TARGET, "main.py": f"from {folder}.core import g\n" + USE}).value.ref == 7


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_link_follows_an_import(link: Link, files: Mapping[str, str]) -> None:
    assert link(files).value.ref == 7


NOWHERE: dict[str, Mapping[str, str]] = {
    "names that import each other": {"a.py": "from b import g\n" + USE, "b.py": "from a import g\n"},
    "a name imported from itself": {"a.py": "from a import g\n" + USE},
    "stars in a circle": {"a.py": "from b import *\n" + USE, "b.py": "from a import *\n"},
    "above the topmost package": {"pkg/__init__.py": "", "pkg/a.py": "from ....x import g\n" + USE},
    "a module that is not there": {"a.py": "from nowhere import g\n" + USE},
    "a name that is not there": {"lib.py": "", "a.py": "from lib import g\n" + USE},
    "two modules of that end": {"x/lib/m.py": TARGET, "y/lib/m.py": TARGET, "z/a.py": "from lib.m import g\n" + USE},
}


@pytest.mark.parametrize("files", NOWHERE.values(), ids=NOWHERE.keys())
def test_an_import_that_leads_nowhere_is_unknown_and_no_error(link: Link, files: Mapping[str, str]) -> None:
    assert link(files).value.kind == "unknown"


ROUND = {
    "pkg/__init__.py": "",
    "pkg/results.py": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from pkg.scheduler import Result
        class Result: ...
    """,
    "pkg/scheduler.py": """
        from pkg.worker import *
        from pkg.results import Result
    """,
    "pkg/worker.py": """
        from pkg.scheduler import *
        from pkg.scheduler import Result as Outcome
    """,
}


@pytest.mark.parametrize("order", [*itertools.permutations(["results.Result", "scheduler.Result", "worker.Outcome"])])
def test_imports_that_lead_back_find_the_same_whichever_name_is_asked_first(link: Link, order: Sequence[str]) -> None:
    project = link(ROUND).program.project
    for name in order:
        module, _, word = name.partition(".")
        found = project.symbol(project.by_name[f"pkg.{module}"], word)
        assert found is not None, name
        assert (found.kind, found.ref) == ("class", (0,)), name
    assert project.symbol(project.by_name["pkg.worker"], "Missing") is None


def test_a_module_is_named_after_its_topmost_package(link: Link) -> None:
    files = dict.fromkeys(["pkg/__init__.py", "pkg/a.py", "pkg/ns/b.py", "src/core/c.py", "d.py", "__init__.py"], "")
    names = {module.name for module in link(files).program.project.modules}
    assert {"project.pkg.a", "project.pkg.ns.b", "project.src.core.c", "project.d"} <= names
    del files["__init__.py"]
    names = {module.name for module in link(files).program.project.modules}
    assert names == {"pkg", "pkg.a", "pkg.ns.b", "core.c", "d"}


def order(linked: Any, name: str) -> list[str]:
    return [cls.record.name for cls in linked.cls(name).mro]


def test_the_method_order_is_that_of_python(link: Link) -> None:
    bases = {"O": "", "A": "O", "B": "O", "C": "A, B", "D": "B", "E": "C, D"}
    text = "".join(f"class {name}({given}): pass\n" for name, given in bases.items())
    space: dict[str, Any] = {}
    exec(text, space)
    linked = link(text)
    for name in "OABCDE":
        assert order(linked, f"main.{name}") == [cls.__name__ for cls in space[name].__mro__[:-1]]


def test_inheritance_in_a_circle_ends(link: Link) -> None:
    linked = link("class A(C): pass\nclass B(A): pass\nclass C(B): pass\nclass D(D): pass\n")
    assert order(linked, "A")[0] == "A"
    assert len(order(linked, "A")) == len(set(order(linked, "A"))) <= 3
    assert order(linked, "D") == ["D"]
    assert [cls.record.name for cls in linked.cls("A").descendants()] == ["B", "C"]


def test_an_impossible_order_still_names_every_base(link: Link) -> None:
    linked = link("class A: pass\nclass B(A): pass\nclass C(A, B): pass\n")
    assert sorted(order(linked, "C")) == ["A", "B", "C"]


def test_bases_are_found_across_files_and_through_generics(link: Link) -> None:
    linked = link(
        {
            "pkg/__init__.py": "from .base import Base as Root\n",
            "pkg/base.py": "class Base:\n    def m(self): return 1\n",
            "one.py": "import pkg\nclass One(pkg.Root[int]): pass\n",
            "two.py": "from one import One\nclass Two(One):\n    def use(self): reveal(self.m())\n",
        }
    )
    assert order(linked, "Two") == ["Two", "One", "Base"]
    assert linked.value.ref == 1


def test_external_bases_are_inherited(link: Link) -> None:
    linked = link(
        {"a.py": "from torch import nn\nclass A(nn.Module): pass\n", "b.py": "import a\nclass B(a.A): pass\n"}
    )
    assert linked.cls("B").externs == {"torch.nn.Module"}


def test_a_class_is_abstract_until_every_abstract_method_has_a_body(link: Link) -> None:
    linked = link(
        """
        from abc import abstractmethod
        class A:
            @abstractmethod
            def m(self): ...
            @property
            @abstractmethod
            def p(self): ...
        class B(A):
            def m(self): return 1
        class C(B):
            @property
            def p(self): return 1
        class D(C): pass
        """
    )
    assert [name for name in "ABCD" if linked.cls(f"main.{name}").is_abstract()] == ["A", "B"]


def test_a_method_is_looked_up_in_the_method_order(link: Link) -> None:
    linked = link("class A:\n    def m(self): ...\nclass B:\n    def m(self): ...\nclass C(A, B): pass\n")
    assert linked.cls("C").method("m").name == "main.A.m"
    assert linked.cls("C").method("n") is None


BINDS = {
    "def m(self): pass": "self",
    "@staticmethod\n    def m(self): pass": "",
    "@classmethod\n    def m(cls): pass": "class",
    "def __new__(cls): pass": "class",
}


@pytest.mark.parametrize("text", BINDS)
def test_the_first_parameter_is_bound(link: Link, text: str) -> None:
    linked = link(f"class A:\n    {text}\n")
    (method,) = [function for function in linked.program.project.functions if function.record.form == "function"]
    assert method.binds == BINDS[text]
