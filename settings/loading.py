"""Where does each value come from: a flag, the environment, the file, or the default?"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource, TomlConfigSettingsSource

from .sections import Section
from .tree import PREFIX, Settings

FILE = "minutewheel.toml"
FILE_VARIABLE = f"{PREFIX}CONFIG"
DEFAULT = "default"
SERVICE_LINK = re.compile(r"(_SERVICE)?_(HOST|PORT)(_|$)")
"""What Kubernetes puts into the environment for a service of our name: not meant for us."""


class SettingsError(ValueError):
    """The settings can't be used; the message has one line for each thing that is wrong."""


class Loaded(Section):
    """The settings, and for each dotted key the source that its value came from."""

    settings: Settings
    origins: Mapping[str, str]


def load(flags: Mapping[str, object] | None = None, file: Path | None = None) -> Loaded:
    """Read all sources. `flags` are by dotted key; without `file` it is the one that MINUTEWHEEL_CONFIG names, or
    `minutewheel.toml` in the working folder if there is one. Raise `SettingsError`."""
    path = _file(file)
    sources = {"flag": dict(flags or {}), "environment": _environment()}
    if path is not None:
        sources[str(path)] = _toml(path)
    problems = [problem for source, given in sources.items() for problem in _unknown(source, given)]
    if problems:
        raise SettingsError("\n".join(problems))
    origins = {key: next((source for source, given in sources.items() if key in given), DEFAULT) for key in keys()}
    merged = {key: sources[source][key] for key, source in origins.items() if source != DEFAULT}
    try:
        return Loaded(settings=Settings(**_nested(merged)), origins=origins)
    except ValidationError as error:
        raise SettingsError("\n".join(_explained(error, origins))) from None


def leaves(tree: type[BaseModel] = Settings, above: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """All dotted keys and what is declared of them, in the order of the tree."""
    for name, field in tree.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from leaves(kind, f"{above}{name}.")
        else:
            yield f"{above}{name}", field


def keys() -> list[str]:
    return [key for key, _ in leaves()]


def variable(key: str) -> str:
    """The environment variable of a key."""
    return PREFIX + key.replace(".", "__").upper()


def shown(tree: BaseModel) -> dict[str, object]:
    """Each key's value as it may be shown: as plain as JSON, and secrets as stars."""
    found: dict[str, object] = {}
    for name in type(tree).model_fields:
        value = getattr(tree, name)
        if isinstance(value, BaseModel):
            found.update({f"{name}.{key}": inner for key, inner in shown(value).items()})
        elif isinstance(value, SecretStr):
            found[name] = str(value)  # stars, or nothing if it is empty
        elif isinstance(value, Path):
            found[name] = str(value)
        else:
            found[name] = list(value) if isinstance(value, tuple) else value
    return found


# Sources, each by dotted key.


def _file(given: Path | None) -> Path | None:
    named = given or (Path(os.environ[FILE_VARIABLE]) if os.environ.get(FILE_VARIABLE) else None)
    if named is None:
        return Path(FILE) if Path(FILE).is_file() else None
    if not named.is_file():
        raise SettingsError(f"there is no settings file {named}")
    return named


def _toml(path: Path) -> dict[str, object]:
    try:
        return dict(_flat(TomlConfigSettingsSource(Settings, path)()))
    except (TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"{path}: {error}") from None


def _environment() -> dict[str, object]:
    """The variables with our prefix; a misspelt one too, to be reported."""
    given = dict(_flat(EnvSettingsSource(Settings)()))
    ignored = {FILE_VARIABLE, *map(variable, keys())}
    for name in map(str.upper, os.environ):
        if name.startswith(PREFIX) and name not in ignored and not SERVICE_LINK.search(name):
            given[name.removeprefix(PREFIX).lower().replace("__", ".")] = None
    return given


def _flat(tree: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _nested(flat: Mapping[str, object]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *above, name = key.split(".")
        inner = tree
        for part in above:
            inner = inner.setdefault(part, {})
        inner[name] = value
    return tree


# Complaints.


def _unknown(source: str, given: Iterable[str]) -> Iterator[str]:
    """A line for each key that there is none of, or that is a section."""
    known = keys()
    write = variable if source == "environment" else str
    for key in given:
        if key in known:
            continue
        if any(name.startswith(f"{key}.") for name in known):
            yield f"{write(key)} ({source}) is a section, not a value"
            continue
        near = get_close_matches(key, known, 1, 0.5)
        hint = f"; did you mean {write(near[0])}?" if near else ""
        yield f"{write(key)} ({source}) is no setting{hint}"


def _explained(error: ValidationError, origins: Mapping[str, str]) -> Iterator[str]:
    """A line for each error, without the value."""
    for one in error.errors(include_url=False, include_input=False, include_context=False):
        key = ".".join(part for part in one["loc"] if isinstance(part, str))
        place = f"{key} ({origins[key]}): " if key in origins else f"{key}: " if key else ""
        yield place + one["msg"].removeprefix("Value error, ")
