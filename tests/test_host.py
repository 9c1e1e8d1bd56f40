import math
import os

from adgn import host


def test_the_processor_has_a_name_also_where_the_system_has_no_list(monkeypatch, tmp_path):
    listed = tmp_path / "cpuinfo"
    listed.write_text("processor\t: 0\nmodel name\t: Some Processor @ 2 GHz\n")
    monkeypatch.setattr(host, "_CPUINFO", listed)
    assert host.processor() == "Some Processor @ 2 GHz"
    monkeypatch.setattr(host, "_CPUINFO", tmp_path / "none")
    assert host.processor()


def test_the_load_is_that_of_the_last_minute(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (1.234, 9.0, 9.0))
    assert host.load_average() == 1.23
    monkeypatch.delattr(os, "getloadavg")
    assert math.isnan(host.load_average())
