"""Which queues may a submission name?

Those that are declared: a submission must not reach a topic that nobody opened to it. An installation for
development declares what it meets instead; such a queue is held at the gate until its topic is there.
"""

from collections.abc import Iterable


class Queues:
    """The declared queues as this process knows them."""

    def __init__(self, *, declares: bool = False) -> None:
        self.silent: frozenset[str] = frozenset()
        self.met: set[str] = set()
        self._declares = declares
        self._known: set[str] = set()

    def admits(self, name: str) -> bool:
        """May a task go to this queue? A new one that is to be declared is noted in `met`."""
        if name in self._known:
            return True
        if self._declares:
            self.met.add(name)
        return self._declares

    def learn(self, names: Iterable[str], silent: Iterable[str]) -> None:
        """These are declared; the silent ones are settled when they are published."""
        self._known.update(names)
        self.met -= self._known
        self.silent = frozenset(silent)
