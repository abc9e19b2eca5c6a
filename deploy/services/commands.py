"""What does `python -m minutewheel.deploy.services` take, and what does it print?"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from .errors import ServiceError
from .jars import classpath
from .java import java
from .launch import addresses, default_folder, down, server, status, up
from .state import PRODUCTS


def parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--folder", type=Path, default=default_folder(), help="where data, logs and state are (%(default)s)"
    )
    shared.add_argument("--json", action="store_true", help="print one JSON document")
    top = argparse.ArgumentParser(
        prog="python -m minutewheel.deploy.services",
        description="Start Cassandra, Kafka and ZooKeeper from Maven's packages, and end only what was started so.",
    )
    verbs = top.add_subparsers(dest="verb", required=True)
    starting = verbs.add_parser("up", parents=[shared], help="start what does not run, and wait until it serves")
    starting.add_argument("products", nargs="*", metavar="PRODUCT", help=f"of {', '.join(PRODUCTS)}; all, if none")
    starting.add_argument("--cluster", action="store_true", help="three Cassandras, three ZooKeepers, one Kafka")
    verbs.add_parser("status", parents=[shared], help="print what is there and what it does")
    ending = verbs.add_parser("down", parents=[shared], help="end the servers; data and logs stay")
    ending.add_argument("names", nargs="*", metavar="NAME", help="servers; all, if none")
    for verb, does in (("kill", "SIGKILL"), ("stop", "SIGSTOP"), ("cont", "SIGCONT"), ("start", "start again")):
        verbs.add_parser(verb, parents=[shared], help=f"{does} one server").add_argument("name", metavar="NAME")
    producing = verbs.add_parser(
        "console-producer", parents=[shared], help="Kafka's own: each line of input is a record"
    )
    producing.add_argument("topic", metavar="TOPIC")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0, 1 when a service did not do as asked."""
    asked = parser().parse_args(arguments)
    try:
        VERBS.get(asked.verb, _one)(asked)
    except ServiceError as fault:
        sys.stderr.write(f"{fault}\n")
        return 1
    return 0


def _up(asked: argparse.Namespace) -> None:
    unknown = set(asked.products) - set(PRODUCTS)
    if unknown:
        raise ServiceError(f"there is no {', '.join(sorted(unknown))}: products are {', '.join(PRODUCTS)}")
    made = up(asked.products or PRODUCTS, asked.folder, cluster=asked.cluster)
    if asked.json:
        _say(msgspec.json.encode(made).decode())
    else:
        _print_status(asked)


def _down(asked: argparse.Namespace) -> None:
    ended = down(asked.folder, asked.names or None)
    _say(msgspec.json.encode(ended).decode() if asked.json else f"ended: {', '.join(ended) or 'nothing ran'}")


def _print_status(asked: argparse.Namespace) -> None:
    found = status(asked.folder)
    if asked.json:
        _say(msgspec.json.encode(found).decode())
        return
    for one in found:
        _say(f"{one.name:12} {one.state:9} {one.address:16} pid {one.pid or '-':<8} {one.log}")
    if not found:
        _say(f"there is no server in {asked.folder}")


def _one(asked: argparse.Namespace) -> None:
    one = server(asked.name, asked.folder)
    getattr(one, asked.verb)()
    if asked.json:
        _print_status(asked)


def _produce(asked: argparse.Namespace) -> None:
    bootstrap = addresses(asked.folder).kafka
    if not bootstrap:
        raise ServiceError(f"there is no Kafka in {asked.folder}: `up` starts one")
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    tool = [java(), quiet, "-cp", classpath("kafka-tools"), "org.apache.kafka.tools.ConsoleProducer"]
    done = subprocess.run(  # noqa: S603 - the command is ours
        [*tool, "--bootstrap-server", bootstrap, "--topic", asked.topic], check=False
    )
    if done.returncode:
        raise ServiceError(f"Kafka's console producer ended with {done.returncode}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


VERBS: dict[str, Callable[[argparse.Namespace], None]] = {
    "up": _up,
    "down": _down,
    "status": _print_status,
    "console-producer": _produce,
}
