"""Device metrics against a scripted NVML. No GPU was there when this was written: what is checked
of the real library is that it has every name that is called here.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from prometheus_client import CollectorRegistry

from modelyard.telemetry import device_metrics
from modelyard.telemetry.device_metrics import APPLICATION_XIDS, ECC, THROTTLES, Devices

NAMES = (
    "nvmlInit",
    "nvmlDeviceGetHandleByIndex",
    "nvmlDeviceGetHandleByUUID",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetTotalEccErrors",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlEventSetCreate",
    "nvmlDeviceRegisterEvents",
    "nvmlEventSetWait_v2",
    "nvmlEventTypeXidCriticalError",
    "NVML_VOLATILE_ECC",
    "NVMLError",
    *THROTTLES.values(),
    *ECC.values(),
)
CONSTANTS = {name: getattr(pynvml, name) for name in NAMES if not callable(getattr(pynvml, name))}


class NoNVML(Exception):
    """The scripted library's NVMLError."""


class Card:
    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        self.used = 3 * 2**30
        self.ecc: dict[int, int] | None = {0: 5, 1: 2}
        self.reasons = 0


class ScriptedNVML:
    """Two cards, with the functions that pynvml has and nothing else."""

    NVMLError = NoNVML

    def __init__(self) -> None:
        self.cards = [Card("GPU-a"), Card("GPU-b")]
        self.events: list[Any] = []
        self.has_events = True
        self.registered: list[str] = []
        vars(self).update(CONSTANTS)

    def nvmlInit(self) -> None: ...

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        if index >= len(self.cards):
            raise NoNVML("Invalid Argument")
        return self.cards[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Card:
        return next(card for card in self.cards if card.uuid == uuid)

    def nvmlDeviceGetUUID(self, card: Card) -> str:
        return card.uuid

    def nvmlDeviceGetMemoryInfo(self, card: Card) -> Any:
        return SimpleNamespace(used=card.used, total=80 * 2**30)

    def nvmlDeviceGetTotalEccErrors(self, card: Card, kind: int, counter: int) -> int:
        assert counter == pynvml.NVML_VOLATILE_ECC
        if card.ecc is None:
            raise NoNVML("Not Supported")
        return card.ecc[kind]

    def nvmlDeviceGetCurrentClocksEventReasons(self, card: Card) -> int:
        return card.reasons

    def nvmlEventSetCreate(self) -> Any:
        if not self.has_events:
            raise NoNVML("Not Supported")
        return object()

    def nvmlDeviceRegisterEvents(self, card: Card, kind: int, events: Any) -> None:
        assert kind == pynvml.nvmlEventTypeXidCriticalError
        self.registered.append(card.uuid)

    def nvmlEventSetWait_v2(self, events: Any, timeout_ms: int) -> Any:
        assert timeout_ms == 0
        if not self.events:
            raise NoNVML("Timeout")
        return self.events.pop(0)

    def reports(self, uuid: str, xid: int) -> None:
        # A new handle, as the library's: equal by UUID alone.
        self.events.append(SimpleNamespace(device=Card(uuid), eventData=xid))


@pytest.fixture
def nvml() -> ScriptedNVML:
    return ScriptedNVML()


def value(devices: Devices, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(devices)
    return registry.get_sample_value(f"modelyard_device_{name}", labels)


@pytest.mark.parametrize("name", NAMES)
def test_the_installed_library_has_every_name_that_is_used(name: str) -> None:
    assert hasattr(pynvml, name)


def test_the_scripted_library_has_no_name_that_the_real_one_lacks(nvml: ScriptedNVML) -> None:
    scripted = {name for name in dir(nvml) if name.startswith(("nvml", "NVML"))}
    assert scripted == set(NAMES)


def test_memory_errors_and_throttling_are_told_per_device(nvml: ScriptedNVML) -> None:
    nvml.cards[1].reasons = pynvml.nvmlClocksEventReasonHwThermalSlowdown
    devices = Devices(nvml, ["0", "GPU-b"], allocated_bytes=2**34)
    devices.look()
    assert value(devices, "memory_used_bytes", device="0") == 3 * 2**30
    assert value(devices, "memory_allocated_bytes", device="GPU-b") == 2**34
    assert value(devices, "ecc_errors_total", device="0", kind="corrected") == 5
    assert value(devices, "ecc_errors_total", device="0", kind="uncorrected") == 2
    assert value(devices, "throttled", device="GPU-b", reason="hw_thermal") == 1
    assert value(devices, "throttled", device="0", reason="hw_thermal") == 0
    assert value(devices, "wants_repair", device="0") == 0
    assert nvml.registered == ["GPU-a", "GPU-b"]


def test_errors_from_before_the_start_are_no_fault(nvml: ScriptedNVML) -> None:
    devices = Devices(nvml, ["0"])
    devices.look()
    assert devices.fault is None


def test_an_uncorrectable_error_since_the_start_wants_repair(nvml: ScriptedNVML) -> None:
    devices = Devices(nvml, ["0", "1"])
    nvml.cards[1].ecc = {0: 5, 1: 3}
    devices.look()
    assert devices.fault == "GPU 1 had 1 uncorrectable ECC errors"
    assert value(devices, "wants_repair", device="1") == 1
    assert value(devices, "wants_repair", device="0") == 0


def test_an_xid_of_the_device_wants_repair_and_stays_told(nvml: ScriptedNVML) -> None:
    devices = Devices(nvml, ["0"])
    nvml.reports("GPU-a", 79)
    nvml.reports("GPU-a", 94)
    devices.look()
    devices.look()
    assert devices.fault == "GPU 0 reported XID 79"
    assert value(devices, "xids_total", device="0") == 2
    assert value(devices, "last_xid", device="0") == 94


@pytest.mark.parametrize("xid", sorted(APPLICATION_XIDS))
def test_an_xid_of_a_program_is_counted_and_is_no_fault(nvml: ScriptedNVML, xid: int) -> None:
    devices = Devices(nvml, ["0"])
    nvml.reports("GPU-a", xid)
    devices.look()
    assert devices.fault is None
    assert value(devices, "last_xid", device="0") == xid


def test_an_event_of_another_device_is_not_ours(nvml: ScriptedNVML) -> None:
    devices = Devices(nvml, ["0"])
    nvml.reports("GPU-elsewhere", 79)
    devices.look()
    assert devices.fault is None
    assert value(devices, "xids_total", device="0") == 0


def test_what_a_device_does_not_know_is_left_out(nvml: ScriptedNVML) -> None:
    nvml.cards[0].ecc = None
    nvml.has_events = False
    devices = Devices(nvml, ["0"])
    devices.look()
    assert value(devices, "ecc_errors_total", device="0", kind="corrected") is None
    assert value(devices, "last_xid", device="0") is None
    assert value(devices, "memory_allocated_bytes", device="0") is None
    assert value(devices, "memory_used_bytes", device="0") == 3 * 2**30


def test_a_device_that_falls_off_the_bus_keeps_its_last_errors(
    nvml: ScriptedNVML, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = Devices(nvml, ["0"])

    def lost(*arguments: Any) -> Any:
        raise NoNVML("GPU is lost")

    monkeypatch.setattr(nvml, "nvmlDeviceGetMemoryInfo", lost)
    monkeypatch.setattr(nvml, "nvmlDeviceGetTotalEccErrors", lost)
    monkeypatch.setattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", lost)
    devices.look()
    assert value(devices, "memory_used_bytes", device="0") is None
    assert value(devices, "ecc_errors_total", device="0", kind="uncorrected") == 2


def test_without_a_gpu_there_is_nothing() -> None:
    assert Devices.of([]) is None


def test_without_a_driver_there_is_nothing(
    nvml: ScriptedNVML, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_driver() -> None:
        raise NoNVML("Driver Not Loaded")

    monkeypatch.setattr(nvml, "nvmlInit", no_driver)
    monkeypatch.setattr(device_metrics, "import_module", lambda name: nvml)
    assert Devices.of(["0"]) is None


def test_a_device_that_ray_knows_and_nvml_does_not_is_no_error(
    nvml: ScriptedNVML, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_metrics, "import_module", lambda name: nvml)
    assert Devices.of(["7"]) is None
    assert Devices.of(["1"]) is not None
