"""Which settings are in force, and where does each come from? And which are there at all?"""

from pathlib import Path
from typing import Annotated

import typer

from .command import Call


def show(
    call: Call, origin: Annotated[bool, typer.Option("--origin", help="Also where each value comes from.")] = False
) -> None:
    """Show all settings. Secrets are shown as stars."""
    from ..settings import shown

    values = shown(call.settings)
    if call.output.json:
        with_origin = {key: {"value": value, "origin": call.origins[key]} for key, value in values.items()}
        call.output.document(with_origin if origin else values)
        return
    for key, value in values.items():
        text = (
            ",".join(map(str, value))
            if isinstance(value, list)
            else str(value).lower()
            if isinstance(value, bool)
            else value
        )
        call.output.line(f"{key} = {text}" + (f"   # {call.origins[key]}" if origin else ""))


def reference(
    call: Call, commands: Annotated[bool, typer.Option("--commands", help="Of the commands instead.")] = False
) -> None:
    """Print the reference of all settings in Markdown, as it stands in docs/configuration.md (or docs/cli.md)."""
    from . import reference as texts

    call.output.out.write(texts.commands() if commands else texts.settings())


def contracts(
    call: Call, folder: Annotated[Path, typer.Argument(help="Where to: `docs`, say.", metavar="FOLDER")]
) -> None:
    """Write the JSON Schema of what stands on the wire, and an AsyncAPI document of the topics."""
    from . import contracts as texts

    for path in texts.write(folder):
        call.output.note(f"wrote {path}")
