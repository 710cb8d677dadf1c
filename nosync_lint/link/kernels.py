"""Answers what rules ask of C++ and CUDA files: is what a matcher demands what the kernel body needs?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nosync_lint.finding import Hop
from nosync_lint.index.cuda_records import CudaFunction, CudaIndex, Matched, Matcher
from nosync_lint.index.records import row_of
from nosync_lint.link.kernel_flow import Flow
from nosync_lint.link.kernel_matchers import KernelMatchers
from nosync_lint.link.kernel_sources import KernelSources, Place
from nosync_lint.link.kernel_values import Path, Summary, Use
from nosync_lint.link.kernel_widths import NarrowedOffset, Widths
from nosync_lint.source import Span

_SCALARS = re.compile(
    r"(?:std::)?(?:bool|u?int(?:8|16|32|64)_t|int|unsigned|long|longlong|float|double|half|__half|__nv_bfloat16|nv_bfloat16"
    r"|__hip_bfloat16|nv_half|at::BFloat16|at::Half|c10::\w+|(?:fp|bf|f)(?:8|16|32|64)\w*_t|__nv_fp8_\w+)"
)
_BYTES = frozenset({"uint8_t", "std::uint8_t", "char", "std::byte", "byte"})
_ANY = frozenset({"-1", "any", "Any", "ANY", "kAny"})


class StrideUse(NamedTuple):
    """A stride of an argument that reaches an address computation; `hops` lead from `.stride(i)` to it."""

    dimension: int
    hops: tuple[Hop, ...]


class ElementRead(NamedTuple):
    """The element type that the kernel reads an argument as."""

    type: str
    hops: tuple[Hop, ...]


class MatchContract(NamedTuple):
    """One (matcher, argument) pair: what is demanded of the tensor and what becomes of it.

    `demanded` has an entry per dimension: the demanded stride as text, "dense" where the matcher asks for
    contiguity, or None where any stride passes. `checked` and `passed` are dimensions whose stride an explicit
    check pins, and whose stride reaches any code (address computation or not known). `traced` says that the
    launched kernel was found and every use of the data followed.
    """

    kind: str
    path: str
    pos: int
    function: str
    argument: str
    matcher: Matcher
    demanded: tuple[str | None, ...]
    checked: frozenset[int]
    passed: frozenset[int]
    dense: bool
    dtype_checked: bool
    strides: tuple[StrideUse, ...]
    reads: tuple[ElementRead, ...]
    used: tuple[Hop, ...]
    traced: bool

    @property
    def row(self) -> int:
        return row_of(self.pos)

    def demands(self, dimension: int) -> str | None:
        """What the matcher demands of the stride of a dimension."""
        return self.demanded[dimension] if 0 <= dimension < len(self.demanded) else None

    def assumed_dense(self) -> tuple[int, ...]:
        """Dimensions whose stride passes whatever it is, while the kernel walks the data without being given it."""
        if not self.used or self.dense:
            return ()
        return tuple(
            dimension
            for dimension, (size, demanded) in enumerate(zip(self.matcher.shape, self.demanded, strict=False))
            if demanded is None and size != "1" and dimension not in self.checked | self.passed
        )


class UnmatchedArguments(NamedTuple):
    """A function that matches some tensors, by `matcher`, and hands others to a kernel unmatched, with their hops."""

    kind: str
    path: str
    span: Span
    function: str
    arguments: tuple[tuple[str, tuple[Hop, ...]], ...]
    matched: int
    matcher: str
    optional: bool


class Census(NamedTuple):
    """A declared number of (matcher, argument) pairs; `path` and `span` are the place of the declaration."""

    kind: str
    path: str
    span: Span
    files: str
    matches: int
    where: str = ""


class CensusCount(NamedTuple):
    """How many (matcher, argument) pairs the matching files hold, in total and per file."""

    total: int
    files: tuple[tuple[str, int], ...]


class Kernels:
    """The linked C++ and CUDA files."""

    def __init__(self, files: Mapping[str, CudaIndex]) -> None:
        self.sources = KernelSources(files)
        self.matchers = KernelMatchers(self.sources)
        self._flow = Flow(self.sources, self.matchers)
        self._contracts: tuple[MatchContract, ...] | None = None

    def contracts(self) -> tuple[MatchContract, ...]:
        """Every (matcher, argument) pair, by file and row."""
        if self._contracts is None:
            self._contracts = tuple(
                self._contract(place, matcher, argument)
                for place in self._places()
                for matcher in (*self.matchers.own(place), *self._called(place))
                for argument in matcher.arguments
            )
        return self._contracts

    def unmatched_arguments(self) -> tuple[UnmatchedArguments, ...]:
        """Functions with matchers in which other tensors reach a kernel unmatched and unchecked."""
        return tuple(found for place in self._matching() if (found := self._unmatched(place)))

    def narrow_offsets(self) -> tuple[NarrowedOffset, ...]:
        """Offsets into tensors that are computed or kept in 32 bits, by file and row."""
        widths = Widths(self.sources, self._flow)
        return tuple(found for place in self._places() for found in widths.narrow_offsets(place))

    def census(self, pattern: str, where: str = "") -> CensusCount:
        """Counts (matcher, argument) pairs in files that match a glob. `where` may be `rank=N`. Raises ValueError."""
        rank = census_rank(where)
        matches = re.compile(_glob(pattern)).fullmatch
        counts: Counter[str] = Counter()
        for place in self._matching():
            if matches(place.path):
                for matcher in self.matchers.own(place):
                    if rank is None or len(matcher.shape) == rank:
                        counts[place.path] += len(matcher.arguments)
        return CensusCount(counts.total(), tuple(sorted(counts.items())))

    def untrusted(self) -> tuple[tuple[str, int], ...]:
        """Files with regions that did not parse, and how many."""
        return tuple((path, len(index.untrusted)) for path, index in self.sources.files.items() if index.untrusted)

    def _called(self, place: Place) -> Iterator[Matcher]:
        """The matchers that stand in functions which match, and leave the launching to a caller."""
        for matcher, within in self.matchers.called(place):
            if not any(use.kind == "launch" for use in self._flow.summary(within).uses):
                yield matcher

    def _places(self) -> Iterator[Place]:
        for path, index in self.sources.files.items():
            yield from (Place(path, function) for function in index.functions)

    def _matching(self) -> Iterator[Place]:
        return (place for place in self._places() if self.matchers.own(place))

    def _contract(self, place: Place, matcher: Matcher, argument: Matched) -> MatchContract:
        summary = self._flow.summary(place)
        tensors = _origins(summary, argument.name)
        rank = len(matcher.shape)
        uses = [(use, use.origin[len(tensor) :]) for tensor in tensors for use in summary.uses if _under(use, tensor)]
        symbols = [_symbols(summary, text) if text not in matcher.shape else [] for text in matcher.strides or ()]
        for dimension, paths in enumerate(symbols):
            uses += [(use, (f"stride({dimension})",)) for path in paths for use in summary.uses if _under(use, path)]
        checked, passed, strides = set[int](), set[int](), dict[int, StrideUse]()
        for use, rest in uses:
            dimensions = _dimensions(rest, rank)
            if use.kind == "equal":
                checked.update(dimensions)
            elif use.kind in ("address", "escape"):
                passed.update(dimensions)
            if use.kind == "address" and use.device and len(dimensions) == 1:
                strides.setdefault(dimensions[0], StrideUse(dimensions[0], _hops(use)))
        derefs = [use for use, rest in uses if rest[:1] == ("data",) and use.kind == "deref" and use.device]
        escapes = any(rest[:1] in (("data",), ()) and use.kind == "escape" for use, rest in uses)
        launched = any(rest[:1] == ("data",) and use.kind == "launch" for use, rest in uses)
        kinds = {use.kind for use, rest in uses if rest == ()}
        return MatchContract(
            "matcher", place.path, matcher.pos, _named(place.function), argument.name, matcher,
            _demanded(matcher, symbols, rank), frozenset(checked), frozenset(passed), "contiguous" in kinds,
            "dtype" in kinds,
            tuple(strides[dimension] for dimension in sorted(strides)), _reads(uses),
            next((_hops(use) for use in derefs), ()), launched and bool(derefs) and not escapes,
        )  # fmt: skip

    def _unmatched(self, place: Place) -> UnmatchedArguments | None:
        """Matching is by matcher, by a check of the dtype, or by checks of the shape and of a stride."""
        summary = self._flow.summary(place)
        found: list[tuple[str, tuple[Hop, ...]]] = []
        optional = True
        for parameter in place.function.tensors:
            uses = [use for use in summary.uses if _under(use, (parameter.name,))]
            kinds = {use.kind for use in uses}
            if kinds & {"matched", "dtype"} or ("shape" in kinds and kinds & {"contiguous", "equal"}):
                continue
            launched = [use for use in uses if use.kind == "launch" and use.origin[1:2] == ("data",)]
            if launched:
                reached = next(
                    (use for use in uses if use.kind in ("read", "deref") and len(use.hops) > 1), launched[0]
                )
                found.append((parameter.name, _hops(reached)))
                optional = optional and parameter.is_optional
        if not found:
            return None
        matchers = self.matchers.own(place)
        count = sum(len(matcher.arguments) for matcher in matchers)
        return UnmatchedArguments(
            "unmatched",
            place.path,
            place.function.at,
            _named(place.function),
            tuple(found),
            count,
            matchers[0].name,
            optional,
        )


def _named(function: CudaFunction) -> str:
    return f"{function.owner}::{function.name}" if function.owner else function.name


def _reads(uses: list[tuple[Use, Path]]) -> tuple[ElementRead, ...]:
    """Element types that fix how many bytes an element has and what they mean; bytes and vectors do not."""
    found: dict[str, ElementRead] = {}
    for use, rest in uses:
        name = use.detail.removeprefix("const")
        if use.kind == "read" and rest == ("data",) and name not in _BYTES and _SCALARS.fullmatch(name):
            found.setdefault(name, ElementRead(name, _hops(use)))
    return tuple(found.values())


def _origins(summary: Summary, name: str) -> list[Path]:
    """The paths that a matched variable stands for."""
    value = summary.names.get(name)
    return sorted({path for path, _ in value.origins}) if value is not None else []


def _under(use: Use, path: Path) -> bool:
    return use.origin[: len(path)] == path


def _dimensions(rest: Path, rank: int) -> Sequence[int]:
    """The dimensions of a path that ends in `stride(i)`: one, or all where `i` is not a number."""
    if not rest or not rest[0].startswith("stride"):
        return ()
    match = re.fullmatch(r"stride\((-?\d+)\)", rest[0])
    if match is None:
        return range(rank)
    dimension = int(match[1])
    return (dimension + rank if dimension < 0 else dimension,)


def _symbols(summary: Summary, text: str) -> list[Path]:
    """The symbols, bound by matching, that an entry of a stride list names."""
    return [path for path in _origins(summary, text) if path[0].startswith("$")]


def _demanded(matcher: Matcher, symbols: list[list[Path]], rank: int) -> tuple[str | None, ...]:
    if matcher.strides is None:
        return ("dense",) * rank
    pairs = zip(matcher.strides, symbols, strict=True)
    return tuple(None if paths or text.rpartition("::")[2] in _ANY else text for text, paths in pairs)


def _hops(use: Use) -> tuple[Hop, ...]:
    return tuple(Hop(passage.path, passage.row, passage.note) for passage in use.hops)


def census_rank(where: str) -> int | None:
    """The rank that the `where` of a census asks for. Raises ValueError with the cure for anything else."""
    if not where.strip():
        return None
    match = re.fullmatch(r"\s*rank\s*=\s*(\d+)\s*", where)
    if match is None:
        raise ValueError(f"`where = {where!r}` is not understood; write `rank=3`")
    return int(match[1])


def _glob(pattern: str) -> str:
    """A regular expression for a glob in which `**` crosses folders; a relative pattern may match any tail."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    spelled = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "(?:.*/)?" + "".join(spelled.get(part, re.escape(part)) for part in parts)
