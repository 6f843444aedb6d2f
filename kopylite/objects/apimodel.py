"""ApiModel: pydantic models whose fields are camelCase on the wire; ObjectMeta, the one that every object has."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from kopylite.objects.modelcodec import codec_of


class ApiModel(BaseModel):
    """A pydantic model with camelCase names on the wire and snake_case in Python.

    Plain `BaseModel`s inside a CustomResource are read and written in the same way; deriving from ApiModel
    brings the wire form (see `wireschema`) to the class's own constructor and `model_validate` too. There is no
    alias generator: type checkers know the constructor's arguments.
    """

    @classmethod
    def __pydantic_on_complete__(cls) -> None:
        """pydantic calls this when the class can be used: its compiled form becomes the wire form."""
        codec = codec_of(cls)
        cls.__pydantic_core_schema__ = codec.schema
        cls.__pydantic_validator__ = codec.validator
        cls.__pydantic_serializer__ = codec.serializer


class OwnerRef(ApiModel):
    """One entry of `metadata.ownerReferences`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(ApiModel):
    """`metadata` of an object. An absent string is "", an absent number 0, an absent map or list empty."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    # Factories: pydantic deep-copies a mutable default for each instance, which costs a quarter of a decode.
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    owner_references: list[OwnerRef] = Field(default_factory=list)
    finalizers: list[str] = Field(default_factory=list)
