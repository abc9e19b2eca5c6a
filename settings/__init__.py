"""Which settings are there, what may they be, and where did each value come from?

One frozen tree, read once at the start. Every key has one name, written in three ways:

    on the command line    --set dispatcher.lead_ms=20000
    in the environment     MINUTEWHEEL_DISPATCHER__LEAD_MS=20000
    in minutewheel.toml    [dispatcher] lead_ms = 20000

and that is also the order in which they count; what none of them says is the default. A key that does not exist is an
error that names the nearest one that does. So is a set of values that can't work together: it shows at the start,
not at nine o'clock. Values are never repeated in messages, for they may be secrets.

The tree knows nothing of the rest of the package: `wiring` turns it into the limits that the parts take.
"""

from .loading import Loaded, SettingsError, keys, leaves, load, shown, variable
from .sections import Section
from .services import Cassandra, Kafka, Secured, Zookeeper
from .tree import QUEUE, Settings

__all__ = [
    "QUEUE",
    "Cassandra",
    "Kafka",
    "Loaded",
    "Section",
    "Secured",
    "Settings",
    "SettingsError",
    "Zookeeper",
    "keys",
    "leaves",
    "load",
    "shown",
    "variable",
]
