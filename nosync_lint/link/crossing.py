"""Where findings may stand whose story leads through some files: what is judged when only these are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from nosync_lint.link.capture import Reached
from nosync_lint.link.heat import HeatMap
from nosync_lint.link.inference import Inference
from nosync_lint.link.project import Function, Project


class Crossing:
    """Finds the files that chains through the touched ones lead to. Whole files: findings are numbered within one."""

    def __init__(self, project: Project, inference: Inference, touched: Collection[str]) -> None:
        self._project, self._inference, self._touched = project, inference, touched

    def functions(self, heat: HeatMap, captured: Iterable[Reached], callers: bool) -> list[Function]:
        """The functions to judge, in project order; `callers`: also of the files that call into the touched ones."""
        found = heat.through(self._touched)
        files = {*self._touched, *(self._project.functions[number].module.file.name for number in found)}
        files.update(
            one.function.module.file.name
            for one in captured
            if any(hop.filename in self._touched for hop in one.hops())
        )
        if callers:
            files.update(self._callers())
        return [function for function in self._project.reported if function.module.file.name in files]

    def _callers(self) -> Iterator[str]:
        """The files with a call that may run a function of a touched file."""
        project = self._project
        called = {f.record.name for f in project.functions if f.module.file.name in self._touched}
        called |= {cls.record.name for cls in project.classes if cls.module.file.name in self._touched}
        called |= {alias for name in list(called) for alias in project.aliases.get(name, ())}
        called |= {
            name
            for name, writes in project.writes_by_attribute.items()
            if any(write.value[0] in ("name", "attr") and write.value[-1] in called for _, write in writes)
        }
        for name in sorted(called):
            for function, site in project.calls_by_name.get(name, ()):
                if any(self._is_touched(target.function) for target in self._inference.targets(function, site)):
                    yield function.module.file.name

    def _is_touched(self, number: int) -> bool:
        return self._project.functions[number].module.file.name in self._touched
