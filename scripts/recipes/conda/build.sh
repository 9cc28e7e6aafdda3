#!/usr/bin/env bash
# Install readmap with kernels compiled for all processors of this architecture: no compiler is needed at run time.
set -euo pipefail
"$PYTHON" -m pip install . --no-deps --no-build-isolation --no-cache-dir -vv
"$PYTHON" -m readmap compile --no-gpu --quiet --into "$SP_DIR/readmap/compiled"
