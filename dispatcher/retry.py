"""When is a failed attempt tried again, and what is filed for it?

Everything follows from the outcome (rule D): the due time counts from its record's time, the jitter from the filing
that failed, and the new record is the delivered one with the starts so far.
"""

from msgspec.structs import replace

from ..broker.outcome import Outcome
from ..store.backoff import backoff_ms
from ..store.record import Filed, encode_headers, encode_options, pack

SNOOZE_DEFAULT_MS = 1_000


def ends_here(outcome: Outcome, *, ended: bool) -> bool:
    """Is there no further attempt?"""
    if outcome.kind == "snoozed":
        return ended
    more = outcome.kind == "failed" and outcome.retryable and outcome.starts < outcome.task.max_attempts
    return ended or not more


def delay_ms(outcome: Outcome) -> int:
    """From the outcome's time to the next attempt: the handler's wish, or the task's own backoff."""
    if outcome.delay_ms is not None:
        return outcome.delay_ms
    if outcome.kind == "snoozed":
        return SNOOZE_DEFAULT_MS
    return backoff_ms(outcome.task.retry, max(1, outcome.starts), outcome.filing)


def carried_record(outcome: Outcome, attempt: int, fence: int) -> bytes:
    """The delivered record as it is filed again, or kept as a dead letter."""
    options = replace(outcome.task, starts=outcome.starts)
    return pack(
        Filed(
            fence,
            outcome.origin,
            attempt,
            outcome.priority,
            outcome.expires_ms,
            outcome.key,
            outcome.queue,
            encode_options(options),
            encode_headers(outcome.headers),
            outcome.payload or b"",
        )
    )
