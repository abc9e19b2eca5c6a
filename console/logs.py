"""Where does what the parts log go, and in which form?

To standard error: as text where a person watches, as one JSON document a line otherwise. Both ways of logging that
the package uses (structlog and the standard library's) end in the same handler. What was sent by users stands in
events too, so texts are spelt out as everywhere (see `output`).
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Literal, TextIO

import structlog

from .output import json_text, plain

Format = Literal["auto", "text", "json"]


class StandardError(logging.Handler):
    """Writes to what `sys.stderr` is at that moment: a live line puts something else there."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):  # nobody reads any more: no reason to end
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """A log that can't be written must not make another."""


def set_up(level: str, form: Format, stream: TextIO) -> None:
    """Route all logging of this process. Meant for the commands that stay."""
    text = form == "text" or (form == "auto" and stream.isatty())
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: Any = structlog.dev.ConsoleRenderer(colors=stream.isatty() and _coloured()) if text else _as_json
    handler = StandardError()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _spell_out, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def _coloured() -> bool:
    import os

    return not os.environ.get("NO_COLOR")


def _as_json(_: Any, __: str, event: MutableMapping[str, Any]) -> str:
    return json_text({name: _json_value(value) for name, value in event.items()})


def _json_value(value: object) -> object:
    if isinstance(value, list | tuple | set | frozenset):
        return [_json_value(one) for one in value]
    return value if isinstance(value, int | float) else str(value)


def _spell_out(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A traceback keeps its lines; all else is one line."""
    for name, value in event.items():
        if name == "exception":
            event[name] = "\n".join(map(plain, str(value).split("\n")))
        elif isinstance(value, str):
            event[name] = plain(value)
    return event
