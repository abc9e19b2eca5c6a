"""How does each task of a run leave at its planned time, whatever became of those before?

The generator waits for no answer. What is planned by now leaves now; answers are noted as they come. So that a broker
that stands still cannot fill the memory, only so many submissions are on their way at a time: what would be more is not
sent at all, and counts as rejected. Nothing is sent a second time.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Protocol

from ..broker.command import InvalidTask
from ..broker.compose import Composer, Submission
from ..broker.errors import BrokerError
from ..broker.port import Produced
from ..broker.wire import Message
from .arrivals import Arrival
from .evaluation import Sent
from .recording import QUEUE, payload_of

IN_FLIGHT_MAX = 20_000
ANSWER_S = 60.0
"""After the last was sent, so long is waited for answers."""
TICK_S = 0.005
"""What is planned within so long leaves together."""
LOOK_S = 0.1


class Produces(Protocol):
    """The one verb of `broker.port.Broker` that is needed here."""

    async def produce(self, messages: Sequence[Message]) -> list[Produced | BrokerError]: ...


class Generator:
    """Sends a plan of arrivals, which begins at `start_ms`; ids begin with `run`."""

    def __init__(
        self, broker: Produces, composer: Composer, run: str, start_ms: int, now_ms: Callable[[], int]
    ) -> None:
        self.sent: list[Sent] = []
        self.failures: dict[str, int] = {}
        """How many attempts are to fail, of those tasks of which any are."""
        self.not_sent = 0
        self.behind_ms = 0
        """How late the generator itself was, at most."""
        self._broker = broker
        self._composer = composer
        self._run = run
        self._start_ms = start_ms
        self._now_ms = now_ms
        self._in_flight = 0

    @property
    def accepted_keys(self) -> set[str]:
        return {one.key for one in self.sent if one.accepted_ms is not None}

    async def run(self, plan: Sequence[Arrival], stop: asyncio.Event) -> None:
        """Send it, until all is sent or `stop`; then wait a while for the answers. What has none by then gets none."""
        next_ = 0
        async with asyncio.TaskGroup() as group:
            sending: set[asyncio.Task[None]] = set()
            while next_ < len(plan) and not stop.is_set():
                now_ms = self._now_ms() - self._start_ms
                until = bisect_right(plan, now_ms, lo=next_, key=lambda arrival: arrival.at_ms)
                if until > next_:
                    self.behind_ms = max(self.behind_ms, now_ms - plan[next_].at_ms)
                    task = group.create_task(self._send(plan[next_:until]))
                    sending.add(task)
                    task.add_done_callback(sending.discard)
                    next_ = until
                wait_s = (plan[next_].at_ms - now_ms) / 1_000 if next_ < len(plan) else 0.0
                await asyncio.sleep(min(max(wait_s, TICK_S), LOOK_S))
            if sending:
                _, late = await asyncio.wait(sending, timeout=LOOK_S if stop.is_set() else ANSWER_S)
                for task in late:
                    task.cancel()

    async def _send(self, arrivals: Sequence[Arrival]) -> None:
        """The first of these that have room go at once; the list knows all, and each one's answer when it has come."""
        now_ms = self._now_ms()
        first = len(self.sent)
        self.sent += [Sent(self._key(one), self._start_ms + one.due_ms, now_ms, None, one.failures) for one in arrivals]
        self.failures.update({self._key(one): one.failures for one in arrivals if one.failures})
        messages: list[Message] = []
        places: list[int] = []
        for place, arrival in enumerate(arrivals, first):
            if self._in_flight + len(messages) >= IN_FLIGHT_MAX:
                self.not_sent += len(arrivals) - (place - first)
                break
            try:
                messages.append(self._composer.submit(self._submission(arrival)))
            except InvalidTask:  # the limits may be set lower than the profile's payloads
                self.not_sent += 1
                continue
            places.append(place)
        self._in_flight += len(messages)
        try:
            answers = await self._broker.produce(messages)
        except BrokerError:
            return
        finally:
            self._in_flight -= len(messages)
        for place, answer in zip(places, answers, strict=True):
            if isinstance(answer, Produced):
                self.sent[place] = self.sent[place]._replace(accepted_ms=answer.time_ms)

    def _submission(self, arrival: Arrival) -> Submission:
        return Submission(
            id=f"{self._run}-{arrival.id}",
            tenant=arrival.tenant,
            queue=QUEUE,
            payload=payload_of(arrival.failures, arrival.payload_bytes),
            due=self._start_ms + arrival.due_ms,
        )

    def _key(self, arrival: Arrival) -> str:
        return f"{arrival.tenant}/{self._run}-{arrival.id}"
