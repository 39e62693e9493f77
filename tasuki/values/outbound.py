"""Where the house may call: public addresses over https, and what `[outbound] allow` names. Pure.

Whoever makes an API destination chooses where this machine sends requests; so what only this machine can reach (itself, its
network, a cloud's metadata service) is closed unless the configuration opens it. What counts is the address that is connected to,
however it was written: names are judged by all that they resolve to, and addresses that hide another one (IPv4 inside IPv6) by
that one too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

SETTING = "[outbound] allow in tasuki.toml"
_NAME = re.compile(r"(?=.{1,253}$)(?!.*\.\d+$)(?!\d+$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_][a-z0-9_-]{0,62})*")
_NAT64 = ip_network("64:ff9b::/96")
_COMPATIBLE = ip_network("::/96")


@dataclass(frozen=True, slots=True)
class Outbound:
    """What may be called besides public addresses: networks, and names whatever they resolve to."""

    networks: tuple[Network, ...] = ()
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, entries: list[str]) -> "Outbound":
        """Read the entries of `[outbound] allow`. Raises ValueError with the entry that is neither."""
        networks, names = [], set()
        for entry in entries:
            network = _network(entry)
            if network is not None:
                networks.append(network)
            elif _NAME.fullmatch(entry.lower()):
                names.add(entry.lower())
            else:
                raise ValueError(entry)
        return cls(tuple(networks), frozenset(names))

    def names_host(self, host: str) -> bool:
        """Tell whether a host is allowed by its name."""
        return _plain(host) in self.names

    def refusal(self, scheme: str, host: str, addresses: list[str]) -> str | None:
        """Answer why a host that has these addresses may not be called, or None.

        All of them must be allowed: a name that has one of ours among its addresses is not to be trusted with the choice.
        """
        if self.names_host(host):
            return None
        opened = True
        for text in addresses:
            address = _address(text)
            if address is None:
                return f"{text} is not an address."
            if self._is_opened(address):
                continue
            opened = False
            if not all(is_public(one) for one in faces(address)):
                shown = host if host.strip("[]") == text else f"{host} ({text})"
                return f"{shown} is not a public address; to call it, add the address, its network or the name to {SETTING}."
        if scheme != "https" and not opened:
            return f"{host} is called without encryption; use https, or add the host to {SETTING}."
        return None

    def _is_opened(self, address: Address) -> bool:
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        one = mapped or address
        return any(one.version == network.version and one in network for network in self.networks)


def is_public(address: Address) -> bool:
    """Tell whether anybody on the Internet could reach an address, too."""
    if address.is_multicast or address.is_unspecified or address.is_loopback or address.is_link_local:
        return False
    if isinstance(address, IPv6Address) and (address.is_site_local or address in _COMPATIBLE):
        return False
    return address.is_global and not address.is_private and not address.is_reserved


def faces(address: Address) -> Iterator[Address]:
    """Answer an address, and those that hide in it: packets to it may be sent on to them."""
    if isinstance(address, IPv4Address):
        yield address
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped  # the same thing, written otherwise
        return
    if address in _NAT64:
        yield IPv4Address(int(address) & 0xFFFFFFFF)  # a translator's: public by itself, as its target is or is not
        return
    yield address
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo


def literal(host: str) -> Address | None:
    """Answer the address that a host is, or None when it is a name (numbers in other spellings are names, which get resolved)."""
    return _address(host.strip("[]"))


def _address(text: str) -> Address | None:
    try:
        return ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _network(entry: str) -> Network | None:
    try:
        return ip_network(entry)
    except ValueError:
        return None


def _plain(host: str) -> str:
    return host.lower().removesuffix(".")
