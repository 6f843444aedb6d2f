"""Kubernetes' protobuf: the form of built-in kinds that Go clients ask for first."""

from kopylite.apiserver.request.protobuf.reading import MalformedProtobuf, decode
from kopylite.apiserver.request.protobuf.writing import encode, encode_event, encode_list

PROTOBUF = "application/vnd.kubernetes.protobuf"

__all__ = ["PROTOBUF", "MalformedProtobuf", "decode", "encode", "encode_event", "encode_list"]
