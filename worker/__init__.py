"""The consumers' SDK: handlers, their workers and the ledger's use; and the clients that submit and ask."""

from .app import App, Handler
from .async_client import Accepted, AsyncClient, Refused
from .client import Client, Loop
from .clock import Clock, SystemClock
from .context import AsyncContext, Context
from .errors import ClientError, HoldLost, NoAnswer, NotAccepted, Reject, Retry, Snooze, TimeoutPassed
from .limits import WorkerLimits
from .request import submission
from .runner import Statistics, Worker
from .view import TaskView

__all__ = [
    "Accepted",
    "App",
    "AsyncClient",
    "AsyncContext",
    "Client",
    "ClientError",
    "Clock",
    "Context",
    "Handler",
    "HoldLost",
    "Loop",
    "NoAnswer",
    "NotAccepted",
    "Refused",
    "Reject",
    "Retry",
    "Snooze",
    "Statistics",
    "SystemClock",
    "TaskView",
    "TimeoutPassed",
    "Worker",
    "WorkerLimits",
    "submission",
]
