"""The build backend: hatchling, after a look at the version of Python."""

import python_version

python_version.check()

from hatchling.build import *  # noqa: E402, F403 - its hooks are ours
