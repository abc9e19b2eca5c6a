"""Which task rows did this reign write last, so that they need not be read to be changed?

The outcome of a task comes soon after the task, and would cost a read of the row that its command has just written.
Only a reign's own writes stand here, and only after the store has taken them: the shard has one writer, and what an
older owner still writes stands below (its timestamp bears a lower fence). Rows of tasks that are over are let go.
"""

from collections.abc import Iterable
from itertools import islice

from ..store.task import TaskRow

ROWS_MAX = 256
"""Some 0.2 MB a shard. What is due later than that is read, many rows at once."""


class Recent:
    """The rows written last, the oldest leaving first."""

    def __init__(self, rows_max: int = ROWS_MAX) -> None:
        self._rows_max = rows_max
        self._rows: dict[str, TaskRow] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def written(self, rows: Iterable[TaskRow]) -> None:
        """The store has these now."""
        for row in rows:
            self._rows.pop(row.key, None)
            if row.state == "scheduled":
                self._rows[row.key] = row
        for key in list(islice(self._rows, max(0, len(self._rows) - self._rows_max))):
            del self._rows[key]

    def rows(self, keys: Iterable[str]) -> list[TaskRow]:
        """Those of these keys that are known."""
        return [self._rows[key] for key in keys if key in self._rows]
