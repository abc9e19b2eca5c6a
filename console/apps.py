"""Which application is `module:app`? Imports it as Python would from the working folder."""

import importlib
import os
import sys
from typing import TYPE_CHECKING

from .exits import ExitCode, Failure

if TYPE_CHECKING:
    from ..worker import App


def load_app(spec: str) -> "App":
    """The `App` of that name; `Failure` says why there is none. An error inside the module is its own."""
    from ..worker import App

    module_name, colon, name = spec.partition(":")
    if not (module_name and colon and name):
        raise Failure(f"{spec!r} is not of the form module:app", ExitCode.USAGE)
    if os.getcwd() not in sys.path:  # noqa: PTH109 - sys.path holds text
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise Failure(f"there is no module {module_name} here or among the installed", ExitCode.USAGE) from None
    app = getattr(module, name, None)
    if not isinstance(app, App):
        raise Failure(f"{module_name} has no App named {name!r}", ExitCode.USAGE)
    return app
