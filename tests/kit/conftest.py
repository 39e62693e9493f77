"""The plugin, also where the installed package does not announce it yet."""

import pytest

from tasuki.testing import plugin


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.hasplugin("tasuki"):
        config.pluginmanager.register(plugin, "tasuki")
