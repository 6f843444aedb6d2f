"""How an admission plug-in says no. Pure."""

from __future__ import annotations

from kopylite.apiserver.world import Admission, qualified_details
from kopylite.errors import Forbidden


def forbidden(admission: Admission, text: str) -> Forbidden:
    """The 403 about the object of a request."""
    resource = admission.call.resource
    metadata = (admission.obj or {})["metadata"]
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    return Forbidden(f'{resource.qualified} "{name}" is forbidden: {text}', details=qualified_details(resource, name))
