"""What a cluster's controller manager does for every object: collect garbage, end namespaces, fill new ones.

They follow the store itself, in process, and write through the same pipeline as any client.
"""

from __future__ import annotations

from kopylite.apiserver.controllers.controllers import NAMES, Controllers

__all__ = ["NAMES", "Controllers"]
