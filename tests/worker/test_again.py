from typing import Any

from minutewheel.broker.errors import BrokerError
from minutewheel.store.errors import UnknownOutcome
from minutewheel.worker.again import CAP_MS, pause_ms, until_done


class Pauses:
    def __init__(self) -> None:
        self.taken: list[int] = []

    def now_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> int:
        return 0

    async def sleep_ms(self, ms: int) -> None:
        self.taken.append(ms)


async def test_what_fails_is_tried_again_with_growing_pauses_until_it_works() -> None:
    pauses = Pauses()
    errors: list[Any] = [BrokerError("gone"), UnknownOutcome("who knows"), BrokerError("gone")]

    async def call() -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert await until_done(pauses, call) == "done"
    assert pauses.taken == [50, 100, 200]


def test_pauses_are_capped_at_any_number_of_failures() -> None:
    assert [pause_ms(n) for n in (1, 7, 8, 10**9)] == [50, 3_200, CAP_MS, CAP_MS]
