"""Flow inside one function: which definitions of a name reach a use, and which tests hold there."""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.index.records import Block, Definition, Expr, FunctionRecord


def enclosing(blocks: tuple[Block, ...], block: int) -> list[int]:
    """The block and the blocks around it, innermost first."""
    path = []
    while block >= 0:
        path.append(block)
        block = blocks[block].parent
    return path


def reaching(record: FunctionRecord, name: str, seq: int, block: int) -> tuple[list[Definition], bool]:
    """The definitions of `name` that may be seen at a use, latest first, and whether its value on entry may be.

    A definition in an enclosing block hides all earlier ones, one in the other branch of a condition does not
    reach, one in a branch that never falls out does not either, and inside a loop later ones come round.
    """
    found = record.definitions.get(name)
    if not found:
        return [], True
    blocks = record.blocks
    if len(found) == 1 and found[0].block == 0 and found[0].seq < seq:
        return [found[0]], False
    path = enclosing(blocks, block)
    around = set(path)
    inclusive = "~" in name
    reached: list[Definition] = []
    covered: set[int] = set()
    hidden_since = -1
    for definition in reversed(found):
        if definition.seq > seq or (definition.seq == seq and not inclusive):
            continue
        where = definition.block
        if where in around:
            reached.append(definition)
            hidden_since = definition.seq
            break
        branch = _branch_below(blocks, where, around)
        if _exclusive(blocks, branch, path) or _never_falls_out(blocks, where, branch):
            continue
        reached.append(definition)
        if _covers(blocks, where, covered, around):
            hidden_since = definition.seq
            break
    loops = [number for number in path if blocks[number].form == "loop"]
    for number in loops:
        last = blocks[number].last
        inside = [d for d in found if d.seq >= seq and d.seq <= last and number in enclosing(blocks, d.block)]
        starts = min((d.seq for d in found if number in enclosing(blocks, d.block)), default=seq)
        if hidden_since >= starts and any(
            d.seq == hidden_since and number in enclosing(blocks, d.block) for d in reached
        ):
            continue
        reached.extend(d for d in inside if d not in reached)
    return reached, hidden_since < 0


def _branch_below(blocks: tuple[Block, ...], block: int, around: set[int]) -> int:
    """The outermost block that holds `block` and does not hold the use."""
    while blocks[block].parent not in around:
        block = blocks[block].parent
    return block


def _twin(blocks: tuple[Block, ...], branch: int) -> int | None:
    """The other branch of the same condition."""
    mine = blocks[branch]
    other = "else" if mine.form == "if" else "if"
    for number in range(max(branch - 400, 0), min(branch + 400, len(blocks))):
        block = blocks[number]
        if block.parent == mine.parent and block.form == other and block.test is mine.test:
            return number
    return None


def _exclusive(blocks: tuple[Block, ...], branch: int, path: list[int]) -> bool:
    mine = blocks[branch]
    if mine.form not in ("if", "else"):
        return False
    other = "else" if mine.form == "if" else "if"
    return any(
        blocks[number].parent == mine.parent and blocks[number].form == other and blocks[number].test is mine.test
        for number in path
    )


def _never_falls_out(blocks: tuple[Block, ...], block: int, branch: int) -> bool:
    while True:
        if blocks[block].ends:
            return True
        if block == branch:
            return False
        block = blocks[block].parent


def _covers(blocks: tuple[Block, ...], block: int, covered: set[int], around: set[int]) -> bool:
    """Whether a definition in `block`, with those in `covered`, is met on every way to a use in `around`."""
    while True:
        covered.add(block)
        form = blocks[block].form
        if form in ("if", "else"):
            twin = _twin(blocks, block)
            if twin is None or not (twin in covered or blocks[twin].ends):
                return False
        elif form not in ("with", "finally"):
            return False
        block = blocks[block].parent
        if block in around:
            return True


def holding(record: FunctionRecord, seq: int, block: int) -> Iterator[tuple[Expr, bool]]:
    """The tests that are known at a place, each with its outcome: conditions around it, earlier branches that
    never fall out, and assertions."""
    blocks = record.blocks
    path = enclosing(blocks, block)
    for number in path:
        one = blocks[number]
        if one.test is not None and one.form in ("if", "else", "loop"):
            yield from _parts(one.test, one.form != "else")
    around = set(path)
    for number, one in enumerate(blocks):
        if one.ends and one.parent in around and number not in around and one.test is not None and one.last <= seq:
            if one.form == "if" and one.last < seq:
                yield from _parts(one.test, False)
            elif one.form == "else":
                yield from _parts(one.test, True)


def left_over(record: FunctionRecord, later: Definition, block: int) -> Iterator[tuple[Expr, bool]]:
    """The tests that held wherever an earlier value was not replaced by a later definition that may not have run."""
    one = record.blocks[later.block]
    if one.test is not None and one.form in ("if", "else") and one.parent in enclosing(record.blocks, block):
        yield from _parts(one.test, one.form == "else")


def _parts(test: Expr, outcome: bool) -> Iterator[tuple[Expr, bool]]:
    """The simple tests inside a compound one whose outcome follows."""
    if test[0] == "unary" and test[1] == "not":
        yield from _parts(test[2], not outcome)
    elif test[0] == "bool" and (test[1] == "and") == outcome:
        for part in test[2]:
            yield from _parts(part, outcome)
    else:
        yield test, outcome


def narrowed_by(test: Expr) -> Iterator[Expr]:
    """The expressions of whose type or place a condition says something."""
    if test[0] == "call":
        if test[1][-1] in ("isinstance", "is_tensor"):
            yield from test[2][:1]
    elif test[0] == "unary":
        yield from narrowed_by(test[2])
    elif test[0] == "bool":
        for part in test[2]:
            yield from narrowed_by(part)
    else:
        found = _place_test(test)
        if found is not None:
            yield found[0]


def tested_place(test: Expr, expr: Expr, outcome: bool) -> str | None:
    """Where an expression lives by the outcome of a test on its device."""
    found = _place_test(test)
    if found is None or found[0] != expr:
        return None
    return "device" if found[1] == outcome else "host"


def _place_test(test: Expr) -> tuple[Expr, bool] | None:
    """The expression that a test asks the place of, and whether "yes" means the device."""
    if test[0] == "attr" and test[2] in ("is_cuda", "is_cpu"):
        return test[1], test[2] == "is_cuda"
    if test[0] == "cmp" and test[1][0] in ("==", "!=") and test[3][0][0] == "const":
        asked, said = test[2], test[3][0][1]
        if asked[0] == "attr" and asked[2] == "type" and asked[1][0] == "attr" and asked[1][2] == "device":
            if said == "cpu":
                return asked[1][1], test[1][0] == "!="
            return (asked[1][1], True) if said == "cuda" and test[1][0] == "==" else None
    return None
