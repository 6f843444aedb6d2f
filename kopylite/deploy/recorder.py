"""Recorder: listens to Managers and keeps the calls of their Apps."""

from __future__ import annotations

from collections.abc import Sequence

from kopylite.client import ApiRequest
from kopylite.deploy.calls import calls_of
from kopylite.deploy.hooks import is_housekeeping
from kopylite.deploy.recording import Recording
from kopylite.manager import Operator
from kopylite.reconcile.context import RUNNING


class Recorder:
    """A RequestRecorder of the manager. Apps that share a Manager share their connections, and so their calls.

    Attributes:
        recording: what was seen up to now.
    """

    def __init__(self) -> None:
        self.recording = Recording()

    def sent(self, apps: Sequence[Operator], request: ApiRequest) -> None:
        context = RUNNING.get()
        if context is None and request.path.startswith("/api/v1/namespaces/") and request.path.count("/") == 4:
            return  # the manager looks whether the namespaces exist that it was given; it does without the answer
        if context is None and is_housekeeping(apps, request):
            return
        calls = calls_of(request, None if context is None else context.request.namespace)
        for app in apps:
            self.recording.note(app.name, calls)
