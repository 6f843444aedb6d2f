"""python -m tests.explore [MACHINE ...]: explore them in full, with a table of what was visited."""

from __future__ import annotations

import logging
import sys
import time

from tests.explore.machines import MACHINES


def main(names: list[str]) -> int:
    """The exit code: 2 for a machine that is none."""
    if unknown := set(names) - MACHINES.keys():
        print(f"no machine {', '.join(sorted(unknown))}: there are {', '.join(MACHINES)}", file=sys.stderr)
        return 2
    logging.disable()
    total = time.process_time()
    print(f"{'machine':12} {'steps deep':>10} {'states':>9} {'steps':>9} {'seconds':>8}")
    for name in names or MACHINES:
        began = time.process_time()
        found = MACHINES[name].full()
        seconds = time.process_time() - began
        print(f"{name:12} {found.depth:10} {found.states:9} {found.steps:9} {seconds:8.1f}", flush=True)
    print(f"{'':43} {time.process_time() - total:8.1f} of this processor")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
