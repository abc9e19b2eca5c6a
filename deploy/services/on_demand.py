"""Who starts a service that may be needed, and ends it after?

`OnDemand` starts a service when its address is first asked for. What ran already is used and left alone at the end.
"""

from pathlib import Path

from .launch import down, up
from .state import Product


class OnDemand:
    """The services of one folder. Asking for an address (`host:port`) starts the service, if it does not run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[str] = []
        """The servers that were started here, by name."""
        self._addresses: dict[Product, str] = {}

    @property
    def cassandra(self) -> str:
        return self._address("cassandra")

    @property
    def kafka(self) -> str:
        return self._address("kafka")

    @property
    def zookeeper(self) -> str:
        return self._address("zookeeper")

    def end(self) -> None:
        """End what was started here, and only that."""
        down(self.folder, self.started)
        self.started.clear()
        self._addresses.clear()

    def _address(self, product: Product) -> str:
        if product not in self._addresses:
            made = up([product], self.folder)
            self.started += made.started
            self._addresses[product] = str(getattr(made, product))
        return self._addresses[product]
