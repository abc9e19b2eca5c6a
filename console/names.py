"""Which task does the user mean? A key as it is printed, or an id of the default tenant or of a named one. Pure."""

from typing import Annotated, Any

import typer

Key = Annotated[
    str, typer.Argument(metavar="KEY", help="`<tenant>/<id>` as printed, or an id; with --tenant always an id.")
]
Tenant = Annotated[str | None, typer.Option(help="The tenant; without it, that of the key, else `default`.")]


def tenant_and_id(limits: Any, key: str, tenant: str | None) -> tuple[str, str]:
    """Taken apart and checked as a submission's would be (composed Unicode, no control characters); `InvalidTask`."""
    from ..broker.form import DEFAULT_TENANT, Reader

    task_id = key
    if tenant is None:
        before, slash, after = key.partition("/")
        tenant, task_id = (before, after) if slash else (DEFAULT_TENANT, key)
    Reader(limits).key_of(tenant, task_id)
    return tenant, task_id
