"""Run a command and end it as soon as standard input closes, however the parent went away.

    python supervise.py STOP_SECONDS COMMAND...

EnvTest runs its servers through this file, so that a test process that crashes or is killed leaves nothing
behind: the pipe closes with it. The first line on standard output is the command's process id. The command
gets SIGTERM, and SIGKILL after STOP_SECONDS; likewise when this process gets SIGTERM. Runs as a plain file
(python -I -S), so it imports nothing of kopylite.
"""

import os
import signal
import subprocess
import sys
import threading


def main(stop_seconds: float, command: list[str]) -> int:
    """Run `command` until it ends or standard input closes; returns its exit code."""
    ending = threading.Event()
    # Before there is a server: whoever ends this process means the server, and it must not be left behind.
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    # Ctrl-C in a terminal reaches the whole process group; only the closed pipe counts here.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True)
    sys.stdout.write(f"{process.pid}\n")
    sys.stdout.flush()

    def notice_parent_going() -> None:
        while os.read(0, 4096):  # not sys.stdin: its lock, held by a daemon thread, aborts the exit
            pass
        ending.set()

    def stop() -> None:
        ending.wait()
        process.terminate()
        try:
            process.wait(stop_seconds)
        except subprocess.TimeoutExpired:
            process.kill()

    for work in (notice_parent_going, stop):
        threading.Thread(target=work, daemon=True).start()
    return process.wait()


if __name__ == "__main__":
    raise SystemExit(main(float(sys.argv[1]), sys.argv[2:]))
