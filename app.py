"""The CDK app: `cdk synth`, `cdk deploy --all`. Needs neither credentials nor a network to synthesize."""

from infra.app import build_app

build_app().synth()
