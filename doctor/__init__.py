"""What is wrong with a fleet's services as they stand, and what is to be done about it?

`examine` asks Kafka, Cassandra and ZooKeeper; each has a module that asks, and the judging is in `topics`, `remedies`,
`clocks` and `versions`, which are pure. A service that does not answer is a finding like any other. Nothing is changed.
"""

from .examination import examine
from .finding import Finding

__all__ = ["Finding", "examine"]
