"""`python -m readmap` is the command `readmap`."""

import sys

from readmap.cli import main

sys.exit(main())
