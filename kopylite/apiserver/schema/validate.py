"""Validation of values against CRD schemas, with the words, paths and order of checks of the real server. Pure.

The server validates with kube-openapi's validator, whose texts name the field a second time
(`spec.size in body must be of type integer: "string"`); composite errors (anyOf, ...) belong to no field
(`<nil>`). Its ways are kept, the odd ones too: operators' users and tests read these texts.
"""

from __future__ import annotations

import math
from typing import Any

from kopylite.apiserver.schema import field_errors as errors
from kopylite.apiserver.schema.field_errors import NO_PATH, FieldError
from kopylite.apiserver.schema.formats import conforms, recognised
from kopylite.apiserver.schema.ratchet import Correlation
from kopylite.apiserver.schema.regex import compile_go

_INT_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1), "": (-(2**63), 2**63 - 1)}
_MAX_JSON_INTEGER = 2**53 - 1
_MAX_FLOAT32 = 3.4028234663852886e38
_VERSION_FIELDS = ("apiVersion", "kind")


class SchemaFindings:
    """What one schema says about one value.

    Attributes:
        problems: field errors by their text, in order of discovery.
        matches: how many checks were made and passed; the "best" branch of an anyOf has the most.
    """

    __slots__ = ("matches", "problems")

    def __init__(self) -> None:
        self.problems: dict[str, FieldError] = {}
        self.matches = 0

    def add(self, error: FieldError) -> None:
        self.problems.setdefault(str(error), error)

    def merge(self, other: SchemaFindings) -> None:
        if other.problems:
            self.problems = {**self.problems, **other.problems}
        self.matches += other.matches


class Validator:
    """A compiled schema.

    Args:
        raw: an OpenAPI v3 schema of a CRD; references are not followed.
        prefix: path of the validated value, put before all fields (but not into the texts).
    """

    def __init__(self, raw: dict[str, Any], prefix: str = "") -> None:
        self._root = _Node(raw)
        self._prefix = prefix

    def validate(self, value: Any, correlation: Correlation | None = None) -> list[FieldError]:
        """All errors of `value`; with a correlation, those of unchanged values are left out (ratcheting)."""
        outcome = self._root.ratcheted(value, "", correlation)
        if not self._prefix:
            return list(outcome.problems.values())
        return [self._with_prefix(error) for error in outcome.problems.values()]

    def _with_prefix(self, error: FieldError) -> FieldError:
        field = self._prefix if error.field == NO_PATH else f"{self._prefix}.{error.field}"
        return FieldError(error.reason, field, error.detail, error.value)


class _Node:
    """One schema node. The order of the checks is the server's."""

    __slots__ = (
    "additional", "all_of", "any_of", "branching", "enum", "format", "items", "negated", "one_of", "properties",
    "raw", "required", "types",
    )  # fmt: skip

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        declared = raw.get("type")
        if raw.get("x-kubernetes-int-or-string"):
            self.types: tuple[str, ...] = ("integer", "string")
        else:
            self.types = (declared,) if declared else ()
        format_name = raw.get("format") or ""
        single = self.types[0] if len(self.types) == 1 else ""
        self.format = format_name if format_name and recognised(format_name, single) else ""
        items = raw.get("items")
        self.items = _Node(items) if isinstance(items, dict) else None
        additional = raw.get("additionalProperties")
        self.additional = _Node(additional) if isinstance(additional, dict) else None
        self.properties = {name: _Node(inner) for name, inner in (raw.get("properties") or {}).items()}
        self.all_of = [_Node(inner) for inner in raw.get("allOf") or ()]
        self.any_of = [_Node(inner) for inner in raw.get("anyOf") or ()]
        self.one_of = [_Node(inner) for inner in raw.get("oneOf") or ()]
        negated = raw.get("not")
        self.negated = _Node(negated) if isinstance(negated, dict) else None
        self.branching = bool(self.all_of or self.any_of or self.one_of or self.negated)
        self.enum = tuple(raw.get("enum") or ())
        self.required = tuple(raw.get("required") or ())

    def ratcheted(self, value: Any, path: str, correlation: Correlation | None) -> SchemaFindings:
        outcome = self.check(value, path, correlation)
        if outcome.problems and correlation is not None and correlation.unchanged:
            outcome.problems = {}
        return outcome

    def check(self, value: Any, path: str, correlation: Correlation | None) -> SchemaFindings:
        outcome = SchemaFindings()
        if self.types or self.format:
            self._check_type(value, path, outcome)
        if value is None:
            self._check_enum(value, path, outcome)
            return outcome
        outcome.matches += 4
        if self.branching:
            self._check_branches(value, path, outcome, correlation)
        if isinstance(value, str):
            self._check_string(value, path, outcome)
        elif isinstance(value, list):
            self._check_list(value, path, outcome, correlation)
        elif isinstance(value, bool):
            outcome.matches -= 1
        elif not isinstance(value, dict):
            _check_number(self, value, path, outcome)
        if self.enum:
            self._check_enum(value, path, outcome)
        if isinstance(value, dict):
            self._check_object(value, path, outcome, correlation)
        return outcome

    def _check_type(self, value: Any, path: str, outcome: SchemaFindings) -> None:
        if value is None:
            if self.types and not self.raw.get("nullable"):
                outcome.add(_type_error(path, ",".join(self.types), "null"))
            else:
                outcome.matches += 1
            return
        actual, actual_format = _type_of(value)
        fits = actual in self.types
        fits = fits or (actual == "number" and _is_json_integer(value) and "integer" in self.types)
        fits = fits or (actual == "integer" and "number" in self.types)
        outcome.matches += 1
        if not fits and self.format and actual not in ("string", "array"):
            outcome.add(_type_error(path, self.format, actual_format))
        elif self.format and actual in ("string", "array") and not {"number", "integer"} & set(self.types):
            outcome.matches += 1
        elif not fits:
            outcome.add(_type_error(path, ",".join(self.types), actual))
        else:
            outcome.matches += 1

    def _check_string(self, value: str, path: str, outcome: SchemaFindings) -> None:
        raw = self.raw
        longest, shortest, pattern = raw.get("maxLength"), raw.get("minLength"), raw.get("pattern")
        if longest is not None and len(value) > longest:
            outcome.add(errors.too_long(_field(path), longest))
        elif shortest is not None and len(value) < shortest:
            outcome.add(_invalid(path, value, f"should be at least {shortest} chars long"))
        elif pattern and not compile_go(pattern).matches(value):
            outcome.add(_invalid(path, value, f"should match '{pattern}'"))
        if self.format:
            outcome.matches += 1
            if not conforms(self.format, value):
                outcome.add(_type_error(path, self.format, value))

    def _check_enum(self, value: Any, path: str, outcome: SchemaFindings) -> None:
        if self.enum and not any(_enum_equal(value, choice) for choice in self.enum):
            choices = [choice if isinstance(choice, str) else errors.go_json(choice) for choice in self.enum]
            outcome.add(errors.unsupported(_field(path), value, choices))

    def _check_list(
        self, value: list[Any], path: str, outcome: SchemaFindings, correlation: Correlation | None
    ) -> None:
        if self.items is not None:
            for index, element in enumerate(value):
                inner = correlation.index(index) if correlation is not None else None
                outcome.merge(self.items.ratcheted(element, f"{path}[{index}]", inner))
        least, most = self.raw.get("minItems"), self.raw.get("maxItems")
        if least is not None and len(value) < least:
            outcome.add(_invalid(path, len(value), f"should have at least {least} items"))
        if most is not None and len(value) > most:
            outcome.add(errors.too_many(_field(path), len(value), most))
        outcome.matches += 1

    def _check_object(
        self, value: dict[str, Any], path: str, outcome: SchemaFindings, correlation: Correlation | None
    ) -> None:
        least, most = self.raw.get("minProperties"), self.raw.get("maxProperties")
        if least is not None and len(value) < least:
            outcome.add(_invalid(path, len(value), f"should have at least {least} properties"))
        if most is not None and len(value) > most:
            outcome.add(errors.too_many(_field(path), len(value), most))
        for key, element in value.items():
            schema = self.properties.get(key)
            inner_path = f"{path}.{key}" if path or schema is None else key
            schema = schema or self.additional
            if schema is not None:
                inner = correlation.key(key) if correlation is not None else None
                if not path and key in _VERSION_FIELDS:
                    inner = None
                outcome.merge(schema.ratcheted(element, inner_path, inner))
        for name in self.required:
            if name not in value:
                outcome.add(errors.required(_field(f"{path}.{name}")))

    def _check_branches(self, value: Any, path: str, outcome: SchemaFindings, correlation: Correlation | None) -> None:
        if self.any_of:
            self._check_any_of(value, path, outcome, correlation)
        if self.one_of:
            self._check_one_of(value, path, outcome, correlation)
        if self.all_of:
            results = [branch.check(value, path, correlation) for branch in self.all_of]
            for result in results:
                outcome.merge(result)
            failed = sum(bool(result.problems) for result in results)
            if failed:
                tail = ". None validated" if failed == len(results) else ""
                outcome.add(_composite(path, f"must validate all the schemas (allOf){tail}"))
        if self.negated is not None and not self.negated.check(value, path, correlation).problems:
            outcome.add(_composite(path, "must not validate the schema (not)"))

    def _check_any_of(self, value: Any, path: str, outcome: SchemaFindings, correlation: Correlation | None) -> None:
        best: SchemaFindings | None = None
        for branch in self.any_of:
            result = branch.check(value, path, correlation)
            if not result.problems:
                outcome.merge(result)
                return
            if best is None or result.matches > best.matches:
                best = result
        outcome.add(_composite(path, "must validate at least one schema (anyOf)"))
        if best is not None:
            outcome.merge(best)

    def _check_one_of(self, value: Any, path: str, outcome: SchemaFindings, correlation: Correlation | None) -> None:
        results = [branch.check(value, path, correlation) for branch in self.one_of]
        valid = [result for result in results if not result.problems]
        if len(valid) == 1:
            outcome.merge(valid[0])
            return
        found = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        outcome.add(_composite(path, f"must validate one and only one schema (oneOf). {found}"))
        if not valid:
            outcome.merge(max(results, key=lambda result: result.matches))


def _check_number(node: _Node, value: float, path: str, outcome: SchemaFindings) -> None:
    kind = node.types[0] if len(node.types) == 1 else ""
    if not _in_range(value, kind, node.format):
        outcome.add(_range_error("Checked", kind, node.format, path))
    raw = node.raw
    checks = (
        ("multipleOf", "MultipleOf", _is_multiple, "a multiple of"),
        ("minimum", "Minimum boundary", _above, "greater than"),
        ("maximum", "Maximum boundary", _below, "less than"),
    )
    for key, label, holds, words in checks:
        limit = raw.get(key)
        if limit is None:
            continue
        native: float = int(limit) if isinstance(value, int) else limit
        if not _in_range(limit, kind, node.format):
            outcome.add(_range_error(label, kind, node.format, path))
            native = limit
        exclusive = bool(raw.get(f"exclusive{key.title()}"))
        if key == "multipleOf" and native <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {errors.go_value(native)}"
            outcome.add(errors.invalid(_field(path), native, text))
        elif not holds(value, native, exclusive):
            ending = "" if exclusive or key == "multipleOf" else " or equal to"
            shown = errors.go_float(float(native)) if isinstance(native, float) else native
            outcome.add(_invalid(path, value, f"should be {words}{ending} {shown}"))
    outcome.matches += 1


def _is_multiple(value: float, factor: float, _: bool) -> bool:
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    return _is_json_integer(1 / factor * value if factor < 1 else value / factor)


def _is_json_integer(value: float) -> bool:
    """Is a float an integer for JSON, that is within 2^53 and up to a relative error of 1e-9?"""
    if not abs(value) <= _MAX_JSON_INTEGER:
        return False
    difference = abs(value - math.trunc(value))
    return difference == 0 or difference / (abs(value) + abs(math.trunc(value))) < 1e-9


def _above(value: float, limit: float, exclusive: bool) -> bool:
    return value > limit if exclusive else value >= limit


def _below(value: float, limit: float, exclusive: bool) -> bool:
    return value < limit if exclusive else value <= limit


def _in_range(value: float, kind: str, format_name: str) -> bool:
    """Can the value be held by the declared type? Numbers without a type can."""
    if kind == "integer":
        low, high = _INT_RANGES.get(format_name, _INT_RANGES[""])
        return (isinstance(value, int) or value.is_integer()) and low <= value <= high
    if kind == "number" and format_name == "float":
        return math.isfinite(value) and abs(value) <= _MAX_FLOAT32
    return True


def _range_error(label: str, kind: str, format_name: str, path: str) -> FieldError:
    suffix = f"with format {format_name}" if format_name else "(default format)"
    return errors.invalid(NO_PATH, "", f"{label} value must be of type {kind} {suffix} in {path}")


def _type_of(value: Any) -> tuple[str, str]:
    """The JSON type of a value, and the format that Go's types imply."""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            return "number", "float64"  # as Go reads what fits no int64
        return "integer", "int64"
    if isinstance(value, float):
        return "number", "float64"
    return ("array", "") if isinstance(value, list) else ("object", "")


def _enum_equal(value: Any, choice: Any) -> bool:
    if value is None or choice is None:
        return False
    if isinstance(value, bool) or isinstance(choice, bool):
        return value is choice
    if isinstance(value, float) and isinstance(choice, int):
        return int(value) == choice  # Go converts the value to the type of the choice first
    return bool(value == choice)


def _field(path: str) -> str:
    return path.removeprefix(".") or NO_PATH


def _invalid(path: str, value: Any, text: str) -> FieldError:
    return errors.invalid(_field(path), value, f"{path} in body {text}")


def _type_error(path: str, expected: str, actual: str) -> FieldError:
    detail = f"{path} in body must be of type {expected}: {errors.go_quote(actual)}"
    return errors.type_invalid(_field(path), actual, detail)


def _composite(path: str, text: str) -> FieldError:
    return errors.invalid(NO_PATH, "", f"{errors.go_quote(path)} {text}")
