"""How does a shard do several things side by side without waiting for anything itself?

Each of its activities is a generator, a straight text that says what follows what. It yields an effect and is
resumed with the answer, or yields `Until` and is resumed when that holds. `Activities` resumes them in turn; it
reads no clock and performs nothing, so one history of answers always gives one run.
"""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

from .effects import Effect, Failed


class Until(NamedTuple):
    """Resume me when this holds, and not before `at_ms`. At `wake_ms` it may begin to hold though nothing happened."""

    holds: Callable[[], bool] | None = None
    at_ms: int = 0
    wake_ms: int = 0


T = TypeVar("T")
Steps = Generator[Effect | Until, Any, T]
"""An activity, or a part of one: what it yields, what it is sent, what it returns."""

RETRY_FIRST_MS = 50
RETRY_CAP_MS = 5_000


class Asked(NamedTuple):
    """An effect to perform, and the activity that waits for its answer."""

    activity: str
    effect: Effect


class Activities:
    """The activities of one shard, by name. `now_ms` is the time of the step being taken."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._running: dict[str, Steps[None]] = {}
        self._until: dict[str, Until] = {}
        self._asking: dict[str, Effect] = {}

    def start(self, name: str, steps: Steps[None]) -> None:
        assert name not in self._running, name
        self._running[name] = steps
        self._until[name] = Until()

    def stop(self, *names: str) -> None:
        for name in names:
            for table in (self._running, self._until, self._asking):
                table.pop(name, None)

    def hasten(self, name: str) -> None:
        """End the pause that it is in, if it is in one; what it waits for besides must still hold."""
        if until := self._until.get(name):
            self._until[name] = until._replace(at_ms=0)

    def running(self, name: str) -> bool:
        return name in self._running

    def resume(self, name: str, answer: object, now_ms: int) -> list[Asked]:
        """Hand an effect's answer over, and run on as far as that leads."""
        self._set_clock(now_ms)
        if self._asking.pop(name, None) is None:
            return []  # the activity was stopped meanwhile
        return [*self._send(name, answer), *self.step(now_ms)]

    def step(self, now_ms: int) -> list[Asked]:
        """Resume all whose condition holds, until none does; return the effects to perform."""
        self._set_clock(now_ms)
        asked: list[Asked] = []
        moved = True
        while moved:
            moved = False
            for name, until in list(self._until.items()):
                if self._until.get(name) is until and self._ready(until):
                    asked += self._send(name, None)
                    moved = True
        return asked

    def next_ms(self) -> int | None:
        """When a step may be due although nothing happens till then."""
        waits = self._until.values()
        times = [at_ms for until in waits for at_ms in (until.at_ms, until.wake_ms) if at_ms > self.now_ms]
        return min(times, default=None)

    def _set_clock(self, now_ms: int) -> None:
        """A clock that is set back takes the ends of all pauses with it: nothing waits for the time to come again."""
        back_ms = self.now_ms - now_ms
        self.now_ms = now_ms
        if back_ms > 0:
            self._until = {name: until._replace(at_ms=until.at_ms - back_ms) for name, until in self._until.items()}

    def _ready(self, until: Until) -> bool:
        return until.at_ms <= self.now_ms and (until.holds is None or until.holds())

    def _send(self, name: str, answer: object) -> list[Asked]:
        self._until.pop(name, None)
        steps = self._running[name]
        try:
            wanted = steps.send(answer)
        except StopIteration:
            self.stop(name)
            return []
        if name not in self._running:
            return []  # it stopped itself, with all the others
        if isinstance(wanted, Until):
            self._until[name] = wanted
            return []
        self._asking[name] = wanted
        return [Asked(name, wanted)]


def insist(activities: Activities, effect: Effect) -> Steps[Any]:
    """Ask for an effect until it goes well, less and less often."""
    delay_ms = RETRY_FIRST_MS
    while True:
        answer = yield effect
        if not isinstance(answer, Failed):
            return answer
        yield Until(at_ms=activities.now_ms + delay_ms)
        delay_ms = min(2 * delay_ms, RETRY_CAP_MS)
