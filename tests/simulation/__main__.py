"""Which history is this? `python -m tests.simulation SEED [-v] [--faultless]` plays it again and says how it ended."""

import argparse
import sys

from .world import Breach, World


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("seed", type=int)
    parser.add_argument("-v", "--verbose", action="store_true", help="print the whole trace")
    parser.add_argument("--faultless", action="store_true", help="the same draw without faults")
    options = parser.parse_args()
    world = World(options.seed, faulty=not options.faultless)
    breach = None
    try:
        world.run()
    except Breach as found:
        breach = found
    if options.verbose:
        print(world.plan)
        for at_ms, *what in world.trace:
            print(f"{at_ms / 1000:9.3f}", *what)
    print(f"seed {options.seed}: {breach or 'no fault'}; trace {world.digest()}")
    print(", ".join(f"{count} {name}" for name, count in sorted(world.counts.items())))
    return 1 if breach else 0


sys.exit(main())
