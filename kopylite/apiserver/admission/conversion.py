"""The objects of a request in the version that a webhook or policy is written for, and back."""

from __future__ import annotations

import copy
from typing import Any

from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.schema.numbers import same_in_go
from kopylite.apiserver.world import Admission, World
from kopylite.errors import ApiError, Cause, InternalError

Object = dict[str, Any]


class Versions:
    """Converts what admission looks at."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def both(self, admission: Admission, resource: Resource) -> tuple[Object | None, Object | None]:
        """Private copies of the object and the old one in the version of a resource."""
        own = admission.call.resource
        return await self._shown(admission.obj, own, resource), await self._shown(admission.old, own, resource)

    async def _shown(self, obj: Object | None, own: Resource, resource: Resource) -> Object | None:
        if obj is None:
            return None
        shown = copy.deepcopy(obj)
        return shown if resource is own else await self.convert(shown, own, resource)

    async def convert(self, obj: Object, source: Resource, target: Resource) -> Object:
        if target.conversion is not None and self._world.convert is not None:
            return (await self._world.convert([obj], target))[0]
        return target.strategy.from_stored(obj, source.encoding_version)

    async def take(self, admission: Admission, resource: Resource, before: Object, after: Object) -> bool:
        """Put what a mutation made into the request, defaulted and pruned as what a client sends.

        Args:
            resource: in whose version `before` and `after` are.

        Returns:
            Whether that changes the object.

        Raises:
            InternalError: it is no object of the kind any more.
        """
        own = admission.call.resource
        foreign = admission.operation == "CONNECT" or admission.call.target.subresource == "token"
        try:
            if not foreign:
                resource.strategy.decode(after)
                resource.strategy.default(after)
        except ApiError as error:
            text = error.message
            raise InternalError(f"Internal error occurred: {text}", causes=[Cause("", text)]) from None
        if same_in_go(before, after):
            return False
        converted = after if foreign or resource is own else await self.convert(after, resource, own)
        assert admission.obj is not None, "only objects are mutated"
        admission.obj.clear()
        admission.obj.update(converted)
        return True
