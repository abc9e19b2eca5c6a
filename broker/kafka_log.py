"""Which of the lines that librdkafka writes are worth a line in the log?

While a broker is away each of its clients says so at each attempt, once or more a second. The first time is news; what
says the same again within a while is counted, and the next line that is let through says how often it was said.
"""

import logging
import re

QUIET_S = 30.0
"""For so long the same is not said again."""
KEPT = 1_000
"""Of so many different lines it is remembered when they were said; of more, the oldest is forgotten."""

_VARIES = re.compile(r"\d+")


class Repeats(logging.Filter):
    """Lets a line through that was not said in the last `QUIET_S`, by the times of the records themselves.

    Lines that differ in figures alone (a port's, how long an attempt took) are the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        line = record.getMessage()
        same = record.levelno, _VARIES.sub("#", line)
        said_s, repeats = self._said.pop(same, (-QUIET_S, 0))
        if 0 <= record.created - said_s < QUIET_S:
            self._said[same] = said_s, repeats + 1
            return False
        self._said[same] = record.created, 0
        if len(self._said) > KEPT:
            del self._said[next(iter(self._said))]
        if repeats:
            record.msg, record.args = f"{line} (said {repeats} times more since)", ()
        return True
