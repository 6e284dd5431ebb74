"""For the tests of all directories."""

pytest_plugins = ["failed_cases"]
