"""The app as a function, so that a test can build it with other settings."""

from pathlib import Path

from aws_cdk import App

from infra.names import Names
from infra.settings import Settings
from infra.stacks.images import ImagesStack
from infra.stacks.service import ServiceStack
from infra.stacks.state import StateStack


def build_app(app: App | None = None, *, deps: Path | None = None) -> App:
    """Builds the stacks of state and service, and where it is asked for the one that builds the sandbox image.

    Args:
        app: the app to fill; a new one when left out. Its context holds the settings.
        deps: the built third-party layer, when it is not `layers/deps/build`.

    Returns:
        The app, ready for `synth()`.

    Raises:
        pydantic.ValidationError: a setting in the context is not allowed.
        infra.constructs.layers.LayerNotBuiltError: the third-party layer is missing or stale.
    """
    app = app or App()
    settings = Settings.from_context(app.node)
    names = Names(settings.stage)
    if settings.image_build:
        ImagesStack(app, names.of("images"), settings=settings, names=names)
    state = StateStack(app, names.of("state"), settings=settings, names=names)
    ServiceStack(app, names.of("service"), settings=settings, names=names, state=state, deps=deps)
    return app
