"""Which history is this? `python -m tests.simulation SEED [-v] [--faultless]` plays it again and says how it ended.

With `--histories N` it plays N of them from this seed on, and prints as JSON what happened in all.
"""

import argparse
import sys

import msgspec

from .histories import play
from .world import Breach, World


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("seed", type=int)
    parser.add_argument("-v", "--verbose", action="store_true", help="print the whole trace")
    parser.add_argument("--faultless", action="store_true", help="the same draw without faults")
    parser.add_argument("--histories", type=int, default=0, help="play so many, from this seed on")
    options = parser.parse_args()
    faulty = not options.faultless
    if options.histories:
        told = play(range(options.seed, options.seed + options.histories), faulty=faulty)
        print(msgspec.json.encode(told).decode())
        return 1 if told.breaches else 0
    return replay(options.seed, faulty=faulty, verbose=options.verbose)


def replay(seed: int, *, faulty: bool, verbose: bool) -> int:
    world = World(seed, faulty=faulty)
    breach = None
    try:
        world.run()
    except Breach as found:
        breach = found
    if verbose:
        print(world.plan)
        for at_ms, *what in world.trace:
            print(f"{at_ms / 1000:9.3f}", *what)
    print(f"seed {seed}: {breach or 'no fault'}; trace {world.digest()}")
    print(", ".join(f"{count:,} {name}" for name, count in sorted(world.counts.items())))
    return 1 if breach else 0


if __name__ == "__main__":
    sys.exit(main())
