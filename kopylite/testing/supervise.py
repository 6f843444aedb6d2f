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
    # Ctrl-C in a terminal reaches the whole process group; only the closed pipe counts here.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True)
    sys.stdout.write(f"{process.pid}\n")
    sys.stdout.flush()

    def stop() -> None:
        process.terminate()
        try:
            process.wait(stop_seconds)
        except subprocess.TimeoutExpired:
            process.kill()

    def stop_when_parent_goes() -> None:
        while os.read(0, 4096):  # not sys.stdin: its lock, held by a daemon thread, aborts the exit
            pass
        stop()

    # Whoever ends this process means the server.
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=stop, daemon=True).start())
    threading.Thread(target=stop_when_parent_goes, daemon=True).start()
    return process.wait()


if __name__ == "__main__":
    raise SystemExit(main(float(sys.argv[1]), sys.argv[2:]))
