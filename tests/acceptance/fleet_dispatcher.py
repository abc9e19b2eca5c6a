"""The product's dispatcher, with one thing more: SIGUSR1 blocks its event loop, as a handler that computes would.

A signal's handler runs in the main thread, between two steps of the loop: nothing else of the loop runs meanwhile, and
all other threads (kazoo's, librdkafka's, the watchdog) do.
"""

import signal
import sys
import time

from minutewheel.console.cli import main

BLOCKED_S = 15

if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, lambda *_: time.sleep(BLOCKED_S))
    sys.argv[0] = "minutewheel"
    main()
