"""How far is it? Bars on standard error where a person watches, nothing anywhere else."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from .output import Output


class Tell(Protocol):
    """Takes how much of a bar is done."""

    def __call__(self, name: str, completed: int) -> None: ...


@contextmanager
def bars(output: Output, totals: Mapping[str, int | None]) -> Iterator[Tell]:
    """A bar for each name; a total of None is one that is not known."""
    if not output.live:
        yield _untold
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    name, left = TextColumn("{task.description}"), TimeRemainingColumn()
    columns = (name, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), left)
    with Progress(*columns, console=output.console(output.err), transient=True) as progress:
        ids = {name: progress.add_task(name, total=total) for name, total in totals.items()}
        yield lambda name, completed: progress.update(ids[name], completed=completed)


def _untold(name: str, completed: int) -> None:
    """Nobody watches."""
