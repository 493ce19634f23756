"""How a finding of the security rules is answered: on its own construct, with its reason."""

from collections.abc import Iterable, Mapping
from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Acknowledges findings on one construct and what is below it.

    Args:
        construct: the construct that the findings are about.
        reasons: from the finding's id, for example `AwsSolutions-IAM5[Resource::*]`, to why it stands.
    """
    Validations.of(construct).acknowledge(
        *(Acknowledgment(id=finding, reason=reason) for finding, reason in reasons.items())
    )


def acknowledge_wildcards(construct: IConstruct, arns: Iterable[str], reason: str) -> None:
    """Acknowledges that a policy names resources by a pattern.

    Args:
        construct: the role, or what holds its policy.
        arns: the statement's resources; those without a wildcard are no finding.
        reason: why nothing narrower can be said.
    """
    stack = Stack.of(construct)
    written = [as_written(stack.resolve(arn)) for arn in arns]
    acknowledge(construct, {f"AwsSolutions-IAM5[Resource::{arn}]": reason for arn in written if "*" in arn})


def as_written(value: Any) -> str:
    """A resolved ARN in the words of a finding: references in angle brackets, everything else as it is.

    Args:
        value: a string, or the CloudFormation function that makes one.

    Raises:
        ValueError: a function that no ARN here is made with.
    """
    match value:
        case str():
            return value
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case {"Fn::ImportValue": name}:
            return as_written(name)
        case {"Fn::Join": [between, parts]}:
            return between.join(map(as_written, parts))
        case _:
            raise ValueError(f"cannot write {value!r} as findings do; teach `as_written` this function")
