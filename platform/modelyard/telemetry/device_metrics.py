"""Accelerators by NVIDIA's management library (NVML): memory, errors, throttling.

Absent where there is no GPU: no family and no error. What is read here is for whoever repairs
nodes, apart from a replica's own health: a hung device is seldom mended by a new process.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, Self

from prometheus_client import Metric
from prometheus_client.registry import Collector

from modelyard.telemetry import families

log = logging.getLogger("modelyard.devices")

# XIDs that a program brings upon itself; every other speaks of the device, its memory or its bus.
# NVIDIA's k8s-device-plugin ignores the same when it decides whether a device is healthy.
APPLICATION_XIDS: Final = frozenset({13, 31, 43, 45, 68, 109})
# What slows a device down against its will, by NVML's name. Idle and set clocks do not.
THROTTLES: Final = {
    "hw_slowdown": "nvmlClocksEventReasonHwSlowdown",
    "hw_thermal": "nvmlClocksEventReasonHwThermalSlowdown",
    "hw_power_brake": "nvmlClocksEventReasonHwPowerBrakeSlowdown",
    "sw_thermal": "nvmlClocksEventReasonSwThermalSlowdown",
    "sw_power_cap": "nvmlClocksEventReasonSwPowerCap",
}
ECC: Final = {
    "corrected": "NVML_MEMORY_ERROR_TYPE_CORRECTED",
    "uncorrected": "NVML_MEMORY_ERROR_TYPE_UNCORRECTED",
}


@dataclass(slots=True)
class _Device:
    name: str
    handle: Any
    used_bytes: int | None = None
    ecc: dict[str, int] = field(default_factory=dict)
    uncorrected_at_start: int = 0
    throttled: dict[str, bool] = field(default_factory=dict)
    xids: Counter[int] = field(default_factory=Counter)
    last_xid: int | None = None
    fault: str | None = None


class Devices(Collector):
    """The accelerators of one replica. `look` each second; a scrape writes what was last seen.

    A figure that a device does not know (ECC on a consumer card) is left out.
    """

    def __init__(self, nvml: Any, ids: Sequence[str], allocated_bytes: int | None = None) -> None:
        """nvml: the module `pynvml`, initialised. ids: Ray's, a number or a UUID of a GPU.
        allocated_bytes: what the version declares of each. Raises NVMLError for an unknown id.
        """
        self._nvml = nvml
        self._allocated_bytes = allocated_bytes
        self._devices = [_Device(str(one), self._handle(str(one))) for one in ids]
        self._events = self._register()
        for device in self._devices:
            device.ecc = self._ecc(device)
            device.uncorrected_at_start = device.ecc.get("uncorrected", 0)

    @classmethod
    def of(cls, ids: Sequence[str], allocated_bytes: int | None = None) -> Self | None:
        """None without a GPU, a driver or the library: a CPU replica has no such families."""
        if not ids:
            return None
        try:
            nvml = import_module("pynvml")
        except ImportError:
            return None
        try:
            nvml.nvmlInit()
            return cls(nvml, ids, allocated_bytes)
        except nvml.NVMLError as error:
            log.warning("NVML does not answer, so this replica has no device metrics: %s", error)
            return None

    @property
    def fault(self) -> str | None:
        """Why the node wants repair: the first fault since this replica started, in words."""
        return next((device.fault for device in self._devices if device.fault), None)

    def look(self) -> None:
        """Read every device. Raises nothing of NVML's."""
        self._read_events()
        for device in self._devices:
            device.used_bytes = self._try(self._used, device)
            device.ecc = self._ecc(device) or device.ecc
            device.throttled = self._try(self._throttled, device) or {}
            worse = device.ecc.get("uncorrected", 0) - device.uncorrected_at_start
            if worse > 0:
                self._fault(device, f"GPU {device.name} had {worse} uncorrectable ECC errors")

    def collect(self) -> Iterator[Metric]:
        devices = self._devices
        used = [((d.name,), d.used_bytes) for d in devices if d.used_bytes is not None]
        yield families.DEVICE_MEMORY_USED.metric(used)
        if self._allocated_bytes is not None:
            allocated = self._allocated_bytes
            yield families.DEVICE_MEMORY_ALLOCATED.metric(((d.name,), allocated) for d in devices)
        yield families.DEVICE_ECC_ERRORS.metric(
            ((d.name, kind), count) for d in devices for kind, count in d.ecc.items()
        )
        yield families.DEVICE_XIDS.metric(((d.name,), d.xids.total()) for d in devices)
        last = [((d.name,), d.last_xid) for d in devices if d.last_xid is not None]
        yield families.DEVICE_LAST_XID.metric(last)
        yield families.DEVICE_THROTTLED.metric(
            ((d.name, reason), float(on)) for d in devices for reason, on in d.throttled.items()
        )
        yield families.DEVICE_WANTS_REPAIR.metric(
            ((d.name,), float(d.fault is not None)) for d in devices
        )

    def _handle(self, name: str) -> Any:
        if name.isdecimal():
            return self._nvml.nvmlDeviceGetHandleByIndex(int(name))
        return self._nvml.nvmlDeviceGetHandleByUUID(name)

    def _register(self) -> Any:
        """An event set for XIDs; None where the driver has none (as under some hypervisors)."""
        nvml = self._nvml
        try:
            events = nvml.nvmlEventSetCreate()
            for device in self._devices:
                kind = nvml.nvmlEventTypeXidCriticalError
                nvml.nvmlDeviceRegisterEvents(device.handle, kind, events)
        except nvml.NVMLError as error:
            log.warning("this GPU reports no XIDs: %s", error)
            return None
        return events

    def _read_events(self) -> None:
        while self._events is not None:
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._events, 0)
            except self._nvml.NVMLError:  # a time-out: no more events
                return
            device = self._device_of(event)
            if device is not None:
                xid = int(event.eventData)
                device.xids[xid] += 1
                device.last_xid = xid
                if xid not in APPLICATION_XIDS:
                    self._fault(device, f"GPU {device.name} reported XID {xid}")

    def _device_of(self, event: Any) -> _Device | None:
        """By UUID: the handle inside an event is another object than the one asked with."""
        uuid = self._try(self._nvml.nvmlDeviceGetUUID, event.device)
        uuids = {self._try(self._nvml.nvmlDeviceGetUUID, d.handle): d for d in self._devices}
        return None if uuid is None else uuids.get(uuid)

    def _fault(self, device: _Device, text: str) -> None:
        if device.fault is None:
            log.error("%s: the node wants repair", text)
            device.fault = text

    def _used(self, device: _Device) -> int:
        return int(self._nvml.nvmlDeviceGetMemoryInfo(device.handle).used)

    def _ecc(self, device: _Device) -> dict[str, int]:
        """Since the driver was loaded; empty where a device has no ECC."""
        nvml, counts = self._nvml, {}
        for kind, constant in ECC.items():
            count = self._try(
                nvml.nvmlDeviceGetTotalEccErrors,
                device.handle,
                getattr(nvml, constant),
                nvml.NVML_VOLATILE_ECC,
            )
            if count is not None:
                counts[kind] = int(count)
        return counts

    def _throttled(self, device: _Device) -> dict[str, bool]:
        reasons = self._nvml.nvmlDeviceGetCurrentClocksEventReasons(device.handle)
        return {
            name: bool(reasons & getattr(self._nvml, constant))
            for name, constant in THROTTLES.items()
        }

    def _try(self, ask: Any, *arguments: Any) -> Any:
        """None for what a device does not support, or does not answer any more."""
        try:
            return ask(*arguments)
        except self._nvml.NVMLError:
            return None
