"""Minutewheel, a distributed task scheduler: never loses a task, fires within milliseconds, explains itself."""

from .broker.command import InvalidTask
from .broker.compose import Submission
from .broker.errors import BrokerError
from .broker.outcome import Outcome
from .broker.receipt import Answer, Receipt
from .store.errors import StoreError
from .store.port import Queue
from .store.record import Retry as Backoff
from .worker import (
    Accepted,
    App,
    AsyncClient,
    AsyncContext,
    Client,
    ClientError,
    Context,
    Handler,
    HoldLost,
    NoAnswer,
    NotAccepted,
    Refused,
    Reject,
    Retry,
    Snooze,
    TaskView,
    TimeoutPassed,
    Worker,
    WorkerLimits,
    submission,
)

__all__ = [
    "Accepted",
    "Answer",
    "App",
    "AsyncClient",
    "AsyncContext",
    "Backoff",
    "BrokerError",
    "Client",
    "ClientError",
    "Context",
    "Handler",
    "HoldLost",
    "InvalidTask",
    "NoAnswer",
    "NotAccepted",
    "Outcome",
    "Queue",
    "Receipt",
    "Refused",
    "Reject",
    "Retry",
    "Snooze",
    "StoreError",
    "Submission",
    "TaskView",
    "TimeoutPassed",
    "Worker",
    "WorkerLimits",
    "submission",
]
