"""What ECS refuses, with its own codes and texts.

Texts that AWS is known to answer stand as they are; where none is on record the docstring or the text says so in our
own words. Everything is HTTP 400.
"""

from tasuki.values.errors import DomainError


class ClientException(DomainError):
    """The request makes no sense as it stands (a definition that is not there, a setting that cannot be)."""

    code = "ClientException"


class InvalidParameterException(DomainError):
    """A parameter is wrong."""

    code = "InvalidParameterException"


class ClusterNotFoundException(DomainError):
    """There is no such cluster."""

    code = "ClusterNotFoundException"

    def __init__(self) -> None:
        super().__init__("Cluster not found.")


class ClusterContainsTasksException(DomainError):
    """Tasks still run in the cluster."""

    code = "ClusterContainsTasksException"

    def __init__(self) -> None:
        super().__init__("The Cluster cannot be deleted while Tasks are active.")


class ConflictException(DomainError):
    """The client token was used for another request. `resourceIds` are the tasks of that one."""

    code = "ConflictException"


class ResourceNotFoundException(DomainError):
    """There is no such resource to tag."""

    code = "ResourceNotFoundException"


class UnsupportedFeatureException(DomainError):
    """Something that no runner here can do. Said at once, never silently ignored."""

    code = "UnsupportedFeatureException"
