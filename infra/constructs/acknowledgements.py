"""How a finding of the security rules is answered: on its own construct, with its reason."""

from collections.abc import Mapping

from aws_cdk import Acknowledgment, Validations
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
