"""Validation of ResourceSlice: the devices that a driver has. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import partial

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.validation_devices import (
    attribute_name,
    device_name,
    distinct,
    listed,
    pool_name,
    taint,
)
from kopylite.apiserver.builtin.validation_scheduling import node_selector
from kopylite.apiserver.schema.field_errors import duplicate, forbidden, invalid, required, too_long, too_many
from kopylite.apiserver.schema.names import label_errors, subdomain_errors
from kopylite.objects.amounts import parse_quantity

_MOST_DEVICES, _MOST_ADVANCED = 128, 64
_MOST_SETS, _MOST_COUNTERS, _MOST_CONSUMED, _MOST_CONDITIONS, _MOST_TAINTS = 8, 32, 2, 4, 16
_MOST_ATTRIBUTES, _MOST_OPTIONS, _LONGEST_VALUE = 32, 10, 64
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_NUMBER = r"(?:0|[1-9]\d*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-(?P<pre>[0-9A-Za-z.-]+))?(?:\+(?P<build>[0-9A-Za-z.-]+))?", re.ASCII
)
_VERSION_TEXT = "must be a string compatible with semver.org spec 2.0.0"
_VALUES = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")
_ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_ONE_DEVICE_PLACE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
_NO_DEVICE_PLACE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)


def resource_slice(obj: Object) -> Errors:
    spec = obj["spec"]
    pool, devices = spec.get("pool") or {}, spec.get("devices") or []
    found = checks.csi_driver_name("spec.driver", spec.get("driver", ""))
    found += pool_name("spec.pool.name", pool.get("name", ""))
    if pool.get("resourceSliceCount", 0) <= 0:
        text = "must be greater than zero"
        found.append(invalid("spec.pool.resourceSliceCount", pool.get("resourceSliceCount", 0), text))
    if pool.get("generation", 0) < 0:
        text = "must be greater than or equal to zero"
        found.append(invalid("spec.pool.generation", pool["generation"], text))
    found += _places(spec, "spec", _PLACES, _ONE_PLACE, f"{_ONE_PLACE}, but multiple fields are set")
    if len((spec.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()) != 1 and "nodeSelector" in spec:
        text = "must have exactly one node selector term"
        found.append(
            invalid("spec.nodeSelector.nodeSelectorTerms", spec["nodeSelector"].get("nodeSelectorTerms"), text)
        )
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        found.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    most = _MOST_ADVANCED if any(_is_advanced(device) for device in devices) else _MOST_DEVICES
    found += listed(devices, "spec.devices", most, partial(_device, placed=bool(spec.get("perDeviceNodeSelection"))))
    found += distinct([device.get("name", "") for device in devices], "spec.devices")
    counters = spec.get("sharedCounters") or ()
    found += listed(counters, "spec.sharedCounters", _MOST_SETS, partial(_counters, name_field="name"))
    return found + distinct([one.get("name", "") for one in counters], "spec.sharedCounters")


def update_resource_slice(new: Object, old: Object) -> Errors:
    spec, before = new["spec"], old["spec"]
    pool, known = (one.get("pool") or {} for one in (spec, before))
    found = checks.immutable("spec.pool.name", pool.get("name", ""), known.get("name", ""))
    for field in ("driver", "nodeName"):
        found += checks.immutable(f"spec.{field}", spec.get(field), before.get(field))
    return found


def _is_advanced(device: Object) -> bool:
    attributes = (device.get("attributes") or {}).values()
    return bool(device.get("taints") or device.get("consumesCounters")) or any(
        one.get(field) is not None for one in attributes for field in _VALUES[4:]
    )


def _places(holder: Object, path: str, fields: Collection[str], none: str, several: str) -> Errors:
    """Where devices can be reached from: exactly one of the ways to say so."""
    found: Errors = []
    given = []
    for field in fields:
        value, where = holder.get(field), f"{path}.{field}"
        if value is None:
            continue
        if value is False:
            found.append(invalid(where, value, "must be either unset or set to true"))
        elif value == "":
            found.append(invalid(where, value, "must be either unset or set to a non-empty string"))
        else:
            given.append(f"`{field}`")
            found += checks.texts(where, value, subdomain_errors(value)) if field == "nodeName" else []
            found += node_selector(value, where, strict=True) if field == "nodeSelector" else []
    if not given:
        found.append(required(path, none))
    if len(given) > 1:
        found.append(invalid(path, f"{{{', '.join(given)}}}", several))
    return found


def _device(device: Object, path: str, *, placed: bool) -> Errors:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    found = device_name(f"{path}.name", device.get("name", ""))
    if len(attributes) + len(capacity) > _MOST_ATTRIBUTES:
        text = f"the total number of attributes and capacities must not exceed {_MOST_ATTRIBUTES}"
        found.append(invalid(path, len(attributes) + len(capacity), text))
    for name, value in attributes.items():
        found += attribute_name(f"{path}.attributes", name) + _attribute(value, f"{path}.attributes[{name}]")
    for name, value in capacity.items():
        found += attribute_name(f"{path}.capacity", name)
        found += _capacity(value, f"{path}.capacity[{name}]", shared=bool(device.get("allowMultipleAllocations")))
    found += listed(device.get("taints"), f"{path}.taints", _MOST_TAINTS, taint)
    consumed = device.get("consumesCounters") or ()
    found += listed(consumed, f"{path}.consumesCounters", _MOST_CONSUMED, partial(_counters, name_field="counterSet"))
    found += distinct([one.get("counterSet", "") for one in consumed], f"{path}.consumesCounters")
    fields = _PLACES[:3]
    if placed:
        found += _places(device, path, fields, _ONE_DEVICE_PLACE, _ONE_DEVICE_PLACE)
    elif any(device.get(field) is not None for field in fields):
        found.append(invalid(path, None, _NO_DEVICE_PLACE))
    return found + _binding(device, path)


def _attribute(attribute: Object, path: str) -> Errors:
    given = [field for field in _VALUES if attribute.get(field) is not None]
    found: Errors = []
    for field, value in ((field, attribute[field]) for field in given):
        where, values = f"{path}.{field}", value if isinstance(value, list) else [value]
        if value == []:
            found.append(invalid(where, value, "must not be empty if specified"))
        for index, one in enumerate(values):
            here = f"{where}[{index}]" if isinstance(value, list) else where
            if field.startswith("version") and not _is_version(one):
                found.append(invalid(here, one, _VERSION_TEXT))
            if isinstance(one, str) and len(one.encode()) > _LONGEST_VALUE:
                found.append(too_long(here, _LONGEST_VALUE))
    names = ", ".join(f"`{field}`" for field in _VALUES)
    if len(given) != 1:
        shown = f"{{{', '.join(given)}}}" if given else ""
        found.append(invalid(path, shown, f"must specify {'exactly ' if given else ''}one of: {names}"))
    return found


def _is_version(text: str) -> bool:
    match = _VERSION.fullmatch(text)
    if match is None:
        return False
    before, build = (match[name].split(".") if match[name] else [] for name in ("pre", "build"))
    return all(before) and all(build) and not any(p.isdigit() and p[0] == "0" and len(p) > 1 for p in before)


def _capacity(capacity: Object, path: str, *, shared: bool) -> Errors:
    policy, where = capacity.get("requestPolicy"), f"{path}.requestPolicy"
    if policy is None:
        return []
    if not shared:
        return [forbidden(where, "allowMultipleAllocations must be true")]
    values, limits, default = policy.get("validValues") or (), policy.get("validRange"), policy.get("default")
    if values and limits is not None:
        text = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        return [forbidden(where, text)]
    if not values and limits is None:
        return []
    kind = "validValues" if values else "validRange"
    if default is None:
        return [required(f"{where}.default", f"required when {kind} is defined")]
    if values:
        return _options(values, default, capacity["value"], f"{where}.validValues")
    return _range(limits or {}, default, capacity["value"], f"{where}.validRange")


def _options(values: Collection[str], default: str, most: str, path: str) -> Errors:
    amounts = [parse_quantity(value).value for value in values]
    found: Errors = []
    for index, value in enumerate(values):
        if index and amounts[index - 1] > amounts[index]:
            found.append(invalid(f"{path}[{index}]", value, "values must be sorted in ascending order"))
    if len(values) > _MOST_OPTIONS:
        found.append(too_many(path, len(values), _MOST_OPTIONS))
    for index, value in enumerate(values):
        if amounts[index] > parse_quantity(most).value:
            found.append(invalid(f"{path}[{index}]", value, f"option is larger than capacity value: {most}"))
        if amounts[index] in amounts[:index]:
            found.append(duplicate(f"{path}[{index}]", value))
    if parse_quantity(default).value not in amounts:
        found.append(invalid(path, default, "default value is not valid according to the requestPolicy"))
    return found


def _range(limits: Object, default: str, most: str, path: str) -> Errors:
    low, high, step = (limits.get(field) for field in ("min", "max", "step"))
    if low is None:
        return [required(f"{path}.min", "required when validRange is defined")]
    whole, least, chosen = (parse_quantity(text).value for text in (most, low, default))
    found: Errors = []
    if least > whole:
        found.append(invalid(f"{path}.min", low, f"min is larger than capacity value: {most}"))
    if chosen < least:
        found.append(invalid(f"{path}.default", default, f"default is less than min: {low}"))
    if high is not None:
        greatest = parse_quantity(high).value
        if least > greatest:
            found.append(invalid(f"{path}.max", low, f"min is larger than max: {high}"))
        if greatest > whole:
            found.append(invalid(f"{path}.max", high, f"max is larger than capacity value: {most}"))
        if chosen > greatest:
            found.append(invalid(f"{path}.default", default, f"default is more than max: {high}"))
    return found if step is None else found + _step(step, limits, default, most, f"{path}.step")


def _step(step: str, limits: Object, default: str, most: str, path: str) -> Errors:
    width, least = parse_quantity(step).value, parse_quantity(limits["min"]).value
    if width <= 0:
        return [invalid(path, step, "must be greater than zero")]
    found: Errors = []
    if least + width > parse_quantity(most).value:
        text = f"one step {least + width} is larger than capacity value: {most}"
        found.append(invalid(path, step, text))
    for value in (default, limits.get("max")):
        if value is not None and (parse_quantity(value).value - least) % width:
            text = f"value is not a multiple of a given step ({step}) from ({limits['min']})"
            found.append(invalid(path, value, text))
    return found


def _counters(holder: Object, path: str, *, name_field: str) -> Errors:
    name, counters = holder.get(name_field, ""), holder.get("counters") or {}
    found = checks.label_name(f"{path}.{name_field}", name)
    where = f"{path}.counters"
    if not counters:
        return [*found, required(where)]
    if len(counters) > _MOST_COUNTERS:
        return [*found, too_many(where, len(counters), _MOST_COUNTERS)]
    return found + [error for key in counters for error in checks.texts(where, key, label_errors(key))]


def _binding(device: Object, path: str) -> Errors:
    """Conditions under which a device counts as bound come with those under which it does not."""
    fine, failed = (device.get(field) or [] for field in ("bindingConditions", "bindingFailureConditions"))
    found: Errors = []
    for field, names in (("bindingConditions", fine), ("bindingFailureConditions", failed)):
        where = f"{path}.{field}"
        found += listed(names, where, _MOST_CONDITIONS, lambda name, here: checks.qualified_name(here, name))
        found += distinct(names, where)
    for index, name in enumerate(failed):
        if name in fine:
            text = "bindingFailureConditions must not overlap with bindingConditions"
            found.append(invalid(f"{path}.bindingFailureConditions[{index}]", name, text))
    if failed and not fine:
        text = "bindingConditions are required to use bindingFailureConditions"
        found.append(invalid(f"{path}.bindingConditions", None, text))
    if fine and not failed:
        text = "bindingFailureConditions are required to use bindingConditions"
        found.append(invalid(f"{path}.bindingFailureConditions", None, text))
    return found
