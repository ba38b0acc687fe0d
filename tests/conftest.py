"""The suite stands on the fixtures that the platform ships for everybody's tests."""

pytest_plugins = ["collidium.testing.plugin"]
