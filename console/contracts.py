"""What may stand on the wire, for programs: JSON Schema of each message, and AsyncAPI of the topics?

Drawn from the types that the decoders use, so that they can't say anything else. The schema of a submission takes all
that the decoder takes; the decoder also checks what a schema can't say (docs/submitting.md).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..broker.media import BATCH_JSON, STRUCTURED
from ..broker.outcome import Outcome
from ..broker.plain import JsonForm
from ..broker.receipt import Written
from ..broker.wire import JSON, Topics
from ..store.task import SHARDS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ID = "https://minutewheel.invalid/schema/"
OPS = ("submit", "cancel", "reschedule", "redrive", "discard")
CONFLICTS = ("reject", "replace", "keep")
TITLES = {"submission": "A command to submit, cancel or change a task", "outcome": "What became of one attempt"}
TITLES |= {"receipt": "What was decided on a command, or became of a task"}
ASYNCAPI = "3.0.0"


def schemas() -> dict[str, dict[str, Any]]:
    """Name → JSON Schema."""
    found = {"submission": _of(JsonForm), "outcome": _of(Outcome), "receipt": _of(Written)}
    fields = found["submission"]["properties"]
    fields["op"] = {"enum": list(OPS)}
    fields["on_conflict"] = {"enum": list(CONFLICTS)}
    for name, schema in found.items():
        schema |= {"$schema": DIALECT, "$id": f"{ID}{name}.json", "title": TITLES[name]}
    items = {"type": "array", "minItems": 1, "items": {"$ref": f"{ID}submission.json"}}
    found["batch"] = {"$schema": DIALECT, "$id": f"{ID}batch.json", "title": "Many commands in one record", **items}
    return found


def _of(type_: Any) -> dict[str, Any]:
    """Its schema with itself at the top; what it refers to stays under $defs."""
    (schema,), parts = msgspec.json.schema_components([type_], ref_template="#/$defs/{name}")
    name = schema["$ref"].rpartition("/")[2]
    own = dict(parts.pop(name))
    return {**own, "$defs": parts} if parts else own


def asyncapi() -> dict[str, Any]:
    """The topics, who may write and read each, and what stands in them."""
    topics = Topics()
    messages = {
        "submission": _message("submission.json", JSON, "plain JSON: a console producer is enough"),
        "batch": _message("batch.json", BATCH_JSON, "many in one record, of any shards"),
        "cloudEvent": {"contentType": STRUCTURED, "summary": "CloudEvents 1.0, structured or binary"},
        "outcome": _message("outcome.json", "application/msgpack", "of one attempt, from a worker"),
        "due": {"summary": "the payload as it was submitted; headers mw_id, mw_filing, mw_idempotency_key …"},
        "receipt": _message("receipt.json", JSON, "for commands that ask for one"),
        "rejected": {"summary": "a record that is not valid, as it came; headers mw_code, mw_message …"},
        "dead": {"summary": "the payload of a task that will not be tried again; headers mw_reason, mw_history …"},
    }
    sends = {"submit": ("submission", "batch", "cloudEvent"), "outcomes": ("outcome",)}
    receives = {"due": ("due",), "receipts": ("receipt",), "rejected": ("rejected",), "dead": ("dead",)}
    addresses = {name: getattr(topics, name) for name in ("submit", "outcomes", "receipts", "rejected", "dead")}
    addresses["due"] = topics.due("{queue}")
    channels = {
        name: _channel(name, addresses[name], carried) for name, carried in sorted({**sends, **receives}.items())
    }
    channels["due"]["parameters"] = {"queue": {"description": "a declared queue"}}
    return {
        "asyncapi": ASYNCAPI,
        "info": {"title": "Minutewheel", "version": "1", "description": "The topics of a fleet, as clients see them."},
        "channels": channels,
        "operations": {**_operations("send", sends), **_operations("receive", receives)},
        "components": {"messages": messages},
    }


def _message(schema: str, media_type: str, summary: str) -> dict[str, Any]:
    return {"contentType": media_type, "summary": summary, "payload": {"$ref": f"schema/{schema}"}}


def _channel(name: str, address: str, carried: tuple[str, ...]) -> dict[str, Any]:
    return {
        "address": address,
        "summary": f"the prefix `minutewheel` of {name} is the setting topics.prefix",
        "messages": {message: {"$ref": f"#/components/messages/{message}"} for message in carried},
        "bindings": {"kafka": {"partitions": SHARDS}},
    }


def _operations(action: str, channels: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Seen from a client of the fleet."""
    return {f"{action}_{name}": {"action": action, "channel": {"$ref": f"#/channels/{name}"}} for name in channels}


def documents() -> dict[str, str]:
    """File below docs/ → its text."""
    found = {f"schema/{name}.json": schema for name, schema in schemas().items()}
    return {
        file: f"{json.dumps(it, indent=2, ensure_ascii=False)}\n"
        for file, it in {**found, "asyncapi.json": asyncapi()}.items()
    }


def write(folder: Path) -> list[Path]:
    """Write all of them; where they are."""
    written = []
    for file, text in documents().items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written
