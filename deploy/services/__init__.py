"""How does one start Cassandra, Kafka and ZooKeeper on a machine without containers, and end only what one started?

    from minutewheel.deploy.services import down, up

    addresses = up(["kafka"], folder)
    addresses.kafka                  # "127.0.0.1:19092"
    server("kafka", folder).kill()   # and .start() again on the same data
    down(folder)

One folder holds one set of servers: their data, logs, and `state.json`, which says what is there. The same by hand:
`python -m minutewheel.deploy.services up`. How to use it: docs/services.md.
"""

from .errors import ServiceError
from .jars import classpath
from .launch import Addresses, Answered, addresses, default_folder, down, server, status, up
from .on_demand import OnDemand
from .server import Server
from .state import PRODUCTS, Product

__all__ = [
    "PRODUCTS",
    "Addresses",
    "Answered",
    "OnDemand",
    "Product",
    "Server",
    "ServiceError",
    "addresses",
    "classpath",
    "default_folder",
    "down",
    "server",
    "status",
    "up",
]
