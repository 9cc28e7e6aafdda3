"""Devices chosen by --device and --gpus."""

import sys
import types
from typing import Any

import pytest

from readmap.backend import Gpus, device_names, devices, open_backends, parse_gpus
from readmap.errors import BackendError, UsageError


@pytest.mark.parametrize(
    ("text", "gpus"), [("1", 1), ("16", 16), (" all ", "all"), ("0,", [0]), ("0,3", [0, 3]), ("3,1,", [3, 1])]
)
def test_parse_gpus(text: str, gpus: Gpus) -> None:
    assert parse_gpus(text) == gpus


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "two", ",", "1,,2", "0,0", "all,", "99999"])
def test_invalid_gpus(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected a number of GPUs, all, or different GPUs with a comma"):
        parse_gpus(text)


@pytest.fixture
def three_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(getDeviceCount=lambda: 3))
    monkeypatch.setattr(devices, "cuda_available", lambda: None)
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=cuda))


@pytest.mark.usefixtures("three_gpus")
@pytest.mark.parametrize(
    ("gpus", "names"),
    [
        (1, ["cuda:0"]),
        (2, ["cuda:0", "cuda:1"]),
        ("all", ["cuda:0", "cuda:1", "cuda:2"]),
        ([2, 0], ["cuda:2", "cuda:0"]),
    ],
)
@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_device_names_of_several_gpus(device: str, gpus: Any, names: list[str]) -> None:
    assert device_names(device, gpus) == names


@pytest.mark.usefixtures("three_gpus")
@pytest.mark.parametrize("gpus", [4, [0, 3]])
def test_missing_gpus(gpus: Any) -> None:
    with pytest.raises(BackendError, match=r"cuda:3 cannot be used: this machine has 3 GPU\(s\), numbered from 0"):
        device_names("auto", gpus)


@pytest.mark.parametrize(("gpus", "shown"), [(2, "2"), ([0], "0,"), ([0, 1], "0,1")])
def test_gpus_with_another_device(gpus: Any, shown: str) -> None:
    with pytest.raises(UsageError, match=f"--gpus {shown}: not with --device cpu, which is one device"):
        open_backends("cpu", gpus)


def test_all_gpus_on_a_machine_without_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cuda_available", lambda: "none is here")
    assert [backend.name for backend in open_backends("auto", "all")] == ["cpu"]
    with pytest.raises(BackendError, match="none is here"):
        device_names("auto", 2)
