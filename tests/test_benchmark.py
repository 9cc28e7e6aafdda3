"""scripts/benchmark on the demo data: what it checks, what it reports and when it gives up. No time is asserted."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .examples import fasta, random_bases
