"""``collidium validate`` on the five real events that come with the platform."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from collidium.cli.root import Session, collidium
from collidium.demo import EVENTS_DIRECTORY
