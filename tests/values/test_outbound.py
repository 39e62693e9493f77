"""Where the house may call: by the address that is connected to, however it was written."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasuki.values.outbound import Outbound, faces, is_public, literal

CLOSED = [
    "127.0.0.1",
    "127.8.9.1",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "239.1.2.3",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "fc00::1",
    "fd12:3456::1",
    "ff02::1",
    "ff0e::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "64:ff9b::10.0.0.1",
    "2002:7f00:1::",
    "2002:a00:1::1",
]
OPEN = ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]


@pytest.mark.parametrize("address", CLOSED)
def test_what_is_not_public_is_closed_and_the_setting_is_named(address: str) -> None:
    why = Outbound().refusal("https", "hooks.example", [address])
    assert why is not None
    assert address in why
    assert "[outbound] allow in tasuki.toml" in why


@pytest.mark.parametrize("address", OPEN)
def test_public_addresses_are_open_over_https(address: str) -> None:
    assert Outbound().refusal("https", "hooks.example", [address]) is None
    why = Outbound().refusal("http", "hooks.example", [address])
    assert why is not None
    assert "without encryption" in why


def test_every_address_of_a_name_counts() -> None:
    why = Outbound().refusal("https", "hooks.example", ["8.8.8.8", "10.0.0.1", "1.1.1.1"])
    assert why is not None
    assert "hooks.example (10.0.0.1)" in why
    opened = Outbound.of(["10.0.0.0/8"])
    assert opened.refusal("https", "hooks.example", ["8.8.8.8", "10.0.0.1"]) is None
    assert opened.refusal("http", "hooks.example", ["10.0.0.1"]) is None
    assert opened.refusal("http", "hooks.example", ["8.8.8.8", "10.0.0.1"]) is not None


@pytest.mark.parametrize(
    ("entry", "address"),
    [
        ("127.0.0.0/8", "127.0.0.1"),
        ("127.0.0.0/8", "::ffff:127.0.0.1"),
        ("10.1.2.3", "10.1.2.3"),
        ("fe80::/10", "fe80::1%eth0"),
        ("::1", "::1"),
    ],
)
def test_what_the_configuration_opens_is_open(entry: str, address: str) -> None:
    assert Outbound.of([entry]).refusal("http", "x", [address]) is None


def test_what_the_configuration_opens_opens_nothing_else() -> None:
    opened = Outbound.of(["127.0.0.0/8", "internal.example"])
    assert opened.refusal("https", "x", ["10.0.0.1"]) is not None
    assert opened.refusal("https", "x", ["::1"]) is not None
    assert opened.refusal("https", "sub.internal.example", ["10.0.0.1"]) is not None
    assert opened.refusal("https", "internal.example.evil", ["10.0.0.1"]) is not None
    assert opened.refusal("http", "Internal.Example.", ["10.0.0.1"]) is None


@pytest.mark.parametrize(
    "entry", ["", "10.0.0.1/8", "https://x", "a b", "x:80", "1.2.3", "*", "*.example", "0x7f.1.300", "-x"]
)
def test_an_entry_is_a_network_or_a_name(entry: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - its text is the entry
        Outbound.of([entry])
    assert str(refused.value) == entry


@pytest.mark.parametrize("host", ["2130706433", "0177.0.0.1", "0x7f.1", "127.1", "hooks.example"])
def test_other_spellings_are_names_that_get_resolved(host: str) -> None:
    assert literal(host) is None


@given(st.ip_addresses(v=4))
def test_ipv4_inside_ipv6_is_judged_as_it_is(inside: ipaddress.IPv4Address) -> None:
    mapped = ipaddress.IPv6Address((0xFFFF << 32) | int(inside))
    sixtofour = ipaddress.IPv6Address((0x2002 << 112) | (int(inside) << 80) | 1)
    translated = ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) | int(inside))
    for outer in (mapped, translated, sixtofour):
        assert not (all(is_public(one) for one in faces(outer)) and not is_public(inside))
