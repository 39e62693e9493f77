"""Models of AWS's services: shapes, operations, errors, as botocore ships them.

The JSON files are read straight out of botocore's folder, each service on first use and without importing botocore:
that import alone costs 19 MB and a fifth of a second, a model without its prose about one millisecond per 100 KB.

::

    service_model(name) ──> Service ── action(name) ──> Action ── input, output ──> Shape
                                                                                   │ members
                                                                                   Member ──> Shape ...

A `Shape` is a type; a `Member` is a place where one is used, with what the place adds (its name on the wire, its
location in a REST request). Both are plain and resolved once; the codecs compile closures from them.
"""

import gzip
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tasuki.values.documents import loads

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_KEPT = 12
"""Models of services that are not offered are only needed to word a refusal: keep few."""


QUICKER = (
    (
        r"[ \t]*[\x20-\x7E]+([ \t]+[\x20-\x7E]+)*[ \t]*",
        r"\t*[\x20-\x7E][\t\x20-\x7E]*",
    ),
    (
        r"[ \t]*[^\x00-\x1F:\x7F]+([ \t]+[^\x00-\x1F:\x7F]+)*[ \t]*",
        r"\t*[^\x00-\x1F:\x7F](?:\t|[^\x00-\x1F:\x7F])*",
    ),
)
"""Parts of AWS's patterns (values of headers) that a text of forty words with one wrong letter keeps busy for years, and others
that match the same."""


class Shape:
    """A type of the model. `kind` is botocore's: structure, list, map, string, integer, long, blob, timestamp, ..."""

    __slots__ = (
        "code",
        "document",
        "enum",
        "flattened",
        "key",
        "kind",
        "maximum",
        "member",
        "members",
        "minimum",
        "name",
        "pattern",
        "payload",
        "required",
        "sensitive",
        "status",
        "timestamp",
        "value",
    )

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        self.name = name
        self.kind: str = spec["type"]
        self.members: dict[str, Member] = {}
        self.required: tuple[str, ...] = tuple(spec.get("required", ()))
        self.member: Member | None = None
        self.key: Member | None = None
        self.value: Member | None = None
        self.minimum: float | None = spec.get("min")
        self.maximum: float | None = spec.get("max")
        self.pattern: str | None = spec.get("pattern")
        self.enum: tuple[str, ...] = tuple(spec.get("enum", ()))
        self.sensitive: bool = bool(spec.get("sensitive"))
        self.flattened: bool = bool(spec.get("flattened"))
        self.timestamp: str | None = spec.get("timestampFormat")
        self.document: bool = bool(spec.get("document"))
        self.payload: str | None = spec.get("payload")
        error = spec.get("error", {})
        self.code: str | None = error.get("code")
        self.status: int | None = error.get("httpStatusCode")

    def matches(self, text: str) -> bool:
        """Tell whether `text` satisfies the pattern (a Java pattern; one that Python can't read is not checked)."""
        pattern = _compiled(self.pattern) if self.pattern is not None else None
        return pattern is None or pattern.fullmatch(text) is not None

    @property
    def element(self) -> "Member":
        """The member of a list."""
        assert self.member is not None, self.name
        return self.member

    @property
    def pair(self) -> "tuple[Member, Member]":
        """Key and value of a map."""
        assert self.key is not None, self.name
        assert self.value is not None, self.name
        return self.key, self.value


@cache
def _compiled(pattern: str) -> re.Pattern[str] | None:
    for slow, quick in QUICKER:
        pattern = pattern.replace(slow, quick)
    try:
        return re.compile(pattern)
    except re.error:
        return None


class Member:
    """A place where a shape is used: a structure's member, a list's element, a map's key or value."""

    __slots__ = ("flattened", "location", "name", "renamed", "shape", "timestamp", "wire")

    def __init__(self, name: str, shape: Shape, spec: Mapping[str, Any]) -> None:
        self.name = name
        self.shape = shape
        self.renamed: str | None = spec.get("locationName")
        self.wire: str = self.renamed or name
        self.location: str | None = spec.get("location")
        self.flattened: bool = bool(spec.get("flattened")) or shape.flattened
        self.timestamp: str | None = spec.get("timestampFormat") or shape.timestamp

    @property
    def tag(self) -> str:
        """The name in the query protocol: a flattened list goes under its element's name, when that has one."""
        if self.flattened and self.shape.kind == "list" and self.shape.element.renamed:
            return self.shape.element.renamed
        return self.wire


_NOTHING = Shape("Nothing", {"type": "structure"})


@dataclass(frozen=True, slots=True)
class Action:
    """An operation of the model."""

    service: "Service"
    name: str
    method: str
    uri: str
    status: int
    input: Shape
    output: Shape | None
    result_wrapper: str | None
    permission: str
    """As an IAM policy names it: `states:StartExecution`."""


@dataclass(slots=True)
class Service:
    """One service's model. `protocol` is `json`, `query`, `rest-json`, `rest-xml`, `ec2` or `smithy-rpc-v2-cbor`."""

    name: str
    protocol: str
    signing_name: str
    target_prefix: str
    json_version: str
    api_version: str
    xml_namespace: str
    query_compatible: bool
    spec: dict[str, Any]
    _shapes: dict[str, Shape] = field(default_factory=dict)
    _actions: dict[str, Action] = field(default_factory=dict)

    def names(self) -> list[str]:
        """All operations of the model."""
        return list(self.spec["operations"])

    def action(self, name: str) -> Action | None:
        """An operation by its name, or None when the service has none of that name."""
        action = self._actions.get(name)
        if action is None:
            spec = self.spec["operations"].get(name)
            if spec is None:
                return None
            action = self._actions[name] = self._action(name, spec)
        return action

    def _action(self, name: str, spec: Mapping[str, Any]) -> Action:
        output = spec.get("output")
        http = spec.get("http", {})
        return Action(
            service=self,
            name=name,
            method=http.get("method", "POST"),
            uri=http.get("requestUri", "/"),
            status=http.get("responseCode", 200),
            input=self.shape(spec["input"]["shape"]) if "input" in spec else _NOTHING,
            output=self.shape(output["shape"]) if output else None,
            result_wrapper=output.get("resultWrapper") if output else None,
            permission=f"{self.signing_name}:{name}",
        )

    def error(self, code: str) -> Shape | None:
        """The shape of a modelled error, or None."""
        spec = self.spec["shapes"].get(code)
        return self.shape(code) if spec is not None and spec.get("exception") else None

    def shape(self, name: str) -> Shape:
        """A shape by its name; shapes that contain themselves are one object."""
        shape = self._shapes.get(name)
        if shape is None:
            spec = self.spec["shapes"][name]
            shape = self._shapes[name] = Shape(name, spec)
            for member, ref in spec.get("members", {}).items():
                shape.members[member] = Member(member, self.shape(ref["shape"]), ref)
            for place in ("member", "key", "value"):
                if place in spec:
                    setattr(shape, place, Member(place, self.shape(spec[place]["shape"]), spec[place]))
        return shape


@lru_cache(maxsize=_KEPT)
def service_model(name: str) -> Service | None:
    """Answer a service by botocore's name (`stepfunctions`), or None when there is none."""
    spec = read_model(name)
    return build_service(name, spec) if spec is not None else None


def build_service(name: str, spec: dict[str, Any]) -> Service:
    """Make a service of a model's JSON."""
    meta = spec["metadata"]
    return Service(
        name=name,
        protocol=meta["protocol"],
        signing_name=meta.get("signingName") or meta["endpointPrefix"],
        target_prefix=meta.get("targetPrefix", ""),
        json_version=meta.get("jsonVersion", "1.0"),
        api_version=meta["apiVersion"],
        xml_namespace=meta.get("xmlNamespace", ""),
        query_compatible="awsQueryCompatible" in meta,
        spec=spec,
    )


def read_model(name: str) -> dict[str, Any] | None:
    """Read a model without its prose, in its newest version, as boto3 takes it; None when there is none."""
    # The name may come from the wire: it must be a plain word before it touches the file system.
    if not _NAME.fullmatch(name):
        return None
    folder = _library() / name
    if not folder.is_dir():
        return None
    version = max((entry.name for entry in folder.iterdir() if entry.is_dir()), default=None)
    if version is None:
        return None
    packed = folder / version / "service-2.json.gz"
    spec: dict[str, Any]
    if packed.exists():
        spec = loads(gzip.decompress(packed.read_bytes()))
    else:
        spec = loads((folder / version / "service-2.json").read_bytes())
    _drop_prose(spec)
    return spec


@cache
def _library() -> Path:
    """Where botocore keeps its models; asked without importing it."""
    spec = find_spec("botocore")
    assert spec is not None, "botocore is not installed"
    assert spec.submodule_search_locations, "botocore is not a package"
    return Path(spec.submodule_search_locations[0]) / "data"


def _drop_prose(spec: dict[str, Any]) -> None:
    """Forget the documentation: it is nine tenths of a model."""
    spec.pop("documentation", None)
    for operation in spec["operations"].values():
        operation.pop("documentation", None)
    for shape in spec["shapes"].values():
        shape.pop("documentation", None)
        for member in shape.get("members", {}).values():
            member.pop("documentation", None)
