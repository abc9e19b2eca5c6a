"""How is it said what is wrong with a fleet's services, and what to do about it?"""

from typing import TYPE_CHECKING

from .command import Call
from .exits import ExitCode, Failure

if TYPE_CHECKING:
    from ..doctor import Finding
    from .output import Output


async def doctor(call: Call) -> int:
    """Look for what is wrong with the services of a fleet, and say of each what to do. Changes nothing.

    The exit code is 1 if anything is found.
    """
    from ..doctor import examine

    if call.settings.mode != "real":
        raise Failure("mode is embedded: there are no services to look at", ExitCode.USAGE)
    return show(await examine(call.settings), call.output)


def show(found: "list[Finding]", output: "Output") -> ExitCode:
    if not found:
        output.note("nothing is wrong")
        return ExitCode.OK
    for finding in found:
        if output.json:
            output.document(finding)
        else:
            output.line(f"{finding.service} {finding.code}: {finding.what}")
            output.line(f"    {finding.do}")
    return ExitCode.FAILED
