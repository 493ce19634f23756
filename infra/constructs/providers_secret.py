"""Where the model providers' keys are kept."""

from aws_cdk import RemovalPolicy, SecretValue
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge
from infra.names import Names
from infra.settings import Settings


class ProvidersSecret(Construct):
    """The secret `nodus/providers`: `{}` at first, filled by the operator, never by the template."""

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, names: Names) -> None:
        super().__init__(scope, construct_id)
        self.secret = secretsmanager.Secret(
            self,
            "Secret",
            secret_name=names.path("providers"),
            description="Base addresses and keys of the model providers, as JSON",
            # An unchanged template value is not written again, so a deployment keeps what the operator put.
            secret_string_value=SecretValue.unsafe_plain_text("{}"),
            removal_policy=RemovalPolicy.RETAIN if settings.protect else RemovalPolicy.DESTROY,
        )
        acknowledge(
            self.secret,
            {
                "AwsSolutions-SMG4": "The keys are issued by the model providers, who offer no rotation that "
                "AWS could drive; the operator replaces them here."
            },
        )

    @property
    def arn(self) -> str:
        """The secret's whole ARN, by the attribute: emulators answer a plain reference with the name."""
        secret = self.secret.node.default_child
        assert isinstance(secret, secretsmanager.CfnSecret)  # noqa: S101 - tells the type checker what it is made of
        return secret.attr_id
