"""What a C++ function waits for, itself and through the functions it calls, in terms of its parameters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nosync_lint.finding import Hop
from nosync_lint.index.cuda_matchers import spell
from nosync_lint.index.cuda_records import CudaGuard, Expr
from nosync_lint.index.records import row_of
from nosync_lint.link.cxx_bodies import Body, Called, Unit, UnitKey
from nosync_lint.link.cxx_models import CxxModels, WaitModel, matches
from nosync_lint.link.cxx_values import CxxValues, Places

MOST_WAITS = 40
"""So many waits of one function are kept, those nearest to it first."""


class Wait(NamedTuple):
    """A call that waits. `operand` must live on the device for that, None where it waits whatever it is given. `hops`
    are the calls from the function that was asked about, `trust` what is believed of it at most."""

    unit: Unit
    pos: int
    text: str
    model: WaitModel
    operand: Places | None
    trust: int
    hops: tuple[Hop, ...] = ()

    @property
    def key(self) -> tuple[str, int, Places | None]:
        return (self.unit.path, self.pos, self.operand)

    @property
    def said(self) -> str:
        """What waits and how, in words."""
        return f"`{self.text}` {self.model.does}"

    def hop(self, note: str) -> Hop:
        """The row that waits, with a note."""
        return Hop(self.unit.path, row_of(self.pos), note)


class CxxWaits:
    """The waits of every host function: its own, then those of what it calls, in rounds that each read the one before,
    so that the shortest way is kept and no order matters."""

    def __init__(self, values: CxxValues, models: CxxModels, extra: Iterable[Unit]) -> None:
        self._values, self._models = values, models
        self._waits: dict[UnitKey, dict[tuple[str, int, Places | None], Wait]] = {}
        callers: dict[str, list[tuple[Body, Called]]] = defaultdict(list)
        changed: dict[UnitKey, list[Wait]] = {}
        names: dict[UnitKey, str] = {}
        for unit in [*values.units(), *extra]:
            names[unit.key] = "" if unit.closure >= 0 or self.is_cold(unit) else unit.function.name
            body = values.body(unit)
            own = self._of_body(body, callers)
            if own:
                changed[unit.key] = own
        while changed:
            for key, found in changed.items():
                self._waits.setdefault(key, {}).update((wait.key, wait) for wait in found)
            changed = self._round(changed, names, callers)

    def of(self, unit: Unit) -> tuple[Wait, ...]:
        """What a function waits for."""
        return tuple(self._waits.get(unit.key, {}).values())

    def is_cold(self, unit: Unit) -> bool:
        """Whether a function runs rarely: by a comment, as constructors and destructors do, and by its name."""
        marked = self._values.marked(unit)
        if marked is not None:
            return marked == "cold"
        name, owner = unit.function.name, unit.function.owner
        return name == owner or name.startswith("~") or matches(name, self._models.cold)

    def own(self) -> Iterator[Wait]:
        """The waits that stand in functions themselves, in project order."""
        for found in self._waits.values():
            yield from (wait for wait in found.values() if not wait.hops)

    def _of_body(self, body: Body, callers: dict[str, list[tuple[Body, Called]]]) -> list[Wait]:
        own = []
        for called in body.calls:
            name = _called_name(called.call)
            if name and name in self._models.known and not self.rare(body, called.pos):
                wait = self._own(body, called)
                if wait is not None:
                    own.append(wait)
                    continue
            if name and not called.call[4]:
                callers[name].append((body, called))
        return own

    def _round(
        self,
        changed: dict[UnitKey, list[Wait]],
        names: dict[UnitKey, str],
        callers: dict[str, list[tuple[Body, Called]]],
    ) -> dict[UnitKey, list[Wait]]:
        """What the callers of changed functions wait for besides what is known."""
        found: dict[UnitKey, dict[tuple[str, int, Places | None], Wait]] = {}
        for name in sorted({names[key] for key in changed} - {""}):
            others = [
                call for run, other in self._models.runs.items() if other == name for call in callers.get(run, ())
            ]
            for body, called in [*callers.get(name, ()), *others]:
                caller = body.unit.key
                known = self._waits.get(caller, {})
                here = found.setdefault(caller, {})
                if len(known) + len(here) >= MOST_WAITS:
                    continue
                for unit in self._values.callees(body, called.call):
                    if unit.key in changed and not self.rare(body, called.pos):
                        for wait in self._passed(body, called, unit, changed[unit.key]):
                            if wait.key not in known:
                                here.setdefault(wait.key, wait)
        return {key: list(waits.values()) for key, waits in sorted(found.items()) if waits}

    def _passed(self, body: Body, called: Called, unit: Unit, waits: list[Wait]) -> Iterator[Wait]:
        """The waits of a callee in terms of the caller's parameters."""
        hop = Hop(body.unit.path, row_of(called.pos), f"calls `{unit.name}`")
        for wait in waits:
            operand = wait.operand
            if operand is not None:
                operand = self._values.bound(operand, body, called.call, called.seq, called.call[3])
                if operand is None or not operand - {"host", "pinned"}:
                    continue
            yield wait._replace(operand=operand, hops=(hop, *wait.hops))

    # -- own calls --

    def _own(self, body: Body, called: Called) -> Wait | None:
        call = called.call
        callee, arguments = call[1], call[2]
        if callee[0] == "name":
            models = self._models.of_function(callee[1])
            subject = arguments[0] if arguments else None
        elif callee[0] == "field":
            models, subject = self._models.methods.get(callee[2], []), callee[1]
        else:
            return None
        admitted = [model for model in models if model.admits(arguments)]
        if not admitted or (callee[0] == "name" and self._values.callees(body, call)):
            return None
        return self._judged(body, called, admitted[0], subject)

    def _judged(self, body: Body, called: Called, model: WaitModel, subject: Expr | None) -> Wait | None:
        call = called.call
        row = call[3]
        wait = Wait(body.unit, called.pos, spell(call), model, None, model.trust)
        if model.form == "always":
            if model.receivers and (subject is None or not matches(spell(subject), model.receivers)):
                if self._values.callees(body, call):
                    return None
                return wait._replace(trust=0)
            return wait
        if model.form == "pageable":
            return wait if subject is not None and self._is_pageable(body, subject) else None
        if model.form == "create":
            held = self._values.places(body, call, called.seq, row)
            return wait._replace(operand=held) if held and held != frozenset({"host"}) else None
        held = self._values.places(body, subject, called.seq, row) if subject is not None else None
        if held is None:
            return None if not call[1][-1] else wait._replace(operand=frozenset({"?"}))
        if model.form == "read":
            return wait._replace(operand=held)
        return self._copied(body, called, wait, held)

    def _copied(self, body: Body, called: Called, wait: Wait, source: Places) -> Wait | None:
        """A copy waits where it leaves the device for the host, or comes from host memory that is not pinned."""
        call = called.call
        name, arguments = call[1][2], call[2]
        flag = _flag(arguments)
        if flag is None:
            wait = wait._replace(trust=0)
        elif flag:
            return None
        if name in self._models.moves["into"]:
            given = self._values.places(body, arguments[0], called.seq, call[3]) if arguments else None
            source, target = given or frozenset({"?"}), source
        else:
            target = self._values.places(body, call, called.seq, call[3]) or frozenset()
        if target == frozenset({"host"}):
            return wait._replace(operand=source)
        if source and source <= {"host", "pinned"}:
            return wait._replace(operand=target)
        return None

    def _is_pageable(self, body: Body, expr: Expr) -> bool:
        """Whether memory is known to be pageable: the address of a local variable, or what a container holds."""
        while expr[0] == "cast":
            expr = expr[2]
        if expr[0] == "unary" and expr[1] == "&":
            inner = expr[2]
            return inner[0] == "name" and inner[1] in body.definitions and "*" not in body.types.get(inner[1], "*")
        if expr[0] == "call" and expr[1][0] == "field" and expr[1][2] in self._models.memory:
            held = body.types.get(expr[1][1][1], "") if expr[1][1][0] == "name" else ""
            return any(container in held for container in self._models.containers)
        return False

    # -- blocks --

    def rare(self, body: Body, pos: int) -> bool:
        """Whether a place is met rarely or never on a CUDA host: computed once, debugging, other platforms, tensors of
        the host."""
        return any(self._is_rare(guard) for guard in body.around(pos))

    def _is_rare(self, guard: CudaGuard) -> bool:
        blocks = self._models.blocks
        if guard.form == "static":
            return True
        if guard.form in ("define", "undefined"):
            words = macro_words(guard.test[1], guard.form == "define")
            patterns = blocks["debug_macros"] + blocks["other_platform_macros"]
            undefined = tuple(pattern for pattern in patterns if pattern[0] == "!")
            return any(matches(word, undefined if word[0] == "!" else patterns) for word in words)
        positive = guard.form == "if"
        test = guard.test
        while test[0] == "unary" and test[1] == "!":
            positive, test = not positive, test[2]
        if positive and any(matches(name, blocks["debug"]) for name in _names(test)):
            return True
        return any(place == "host" for _, place in self._values.facts(guard.test, guard.form == "if"))


def _called_name(call: Expr) -> str:
    """The last name of what is called, or nothing."""
    callee = call[1]
    if callee[0] == "name":
        return str(callee[1].rpartition("::")[2])
    return str(callee[2]) if callee[0] == "field" else ""


def macro_words(condition: str, holds: bool) -> list[str]:
    """The words of a preprocessor condition, with `!` before those that must not be defined."""
    words = []
    negated = False
    for part in condition.replace("(", " ( ").replace(")", " ) ").replace("!", " ! ").split():
        if part == "!":
            negated = True
        elif part[0].isalpha() or part[0] == "_":
            if part != "defined":
                words.append(part if negated != holds else "!" + part)
                negated = False
        elif part != "(":
            negated = False
    return words


def _names(test: Expr) -> Iterator[str]:
    """The names that a condition mentions."""
    pending = [test]
    while pending:
        expr = pending.pop()
        if expr and expr[0] == "name":
            yield expr[1].rpartition("::")[2]
        elif expr and expr[0] == "field":
            yield expr[2]
        pending += [item for item in expr if isinstance(item, tuple)]


def _flag(arguments: tuple[Expr, ...]) -> bool | None:
    """The `non_blocking` of a copy: the first truth value among its arguments; None where it is not a literal."""
    for argument in arguments[1:3]:
        if argument in (("lit", "true"), ("lit", "false")):
            return bool(argument[1] == "true")
        if argument[0] == "name" and not (argument[1].rpartition("::")[2][:1] == "k" or "type" in argument[1]):
            return None
    return False
