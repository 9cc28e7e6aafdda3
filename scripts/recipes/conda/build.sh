#!/usr/bin/env bash
# Installs readmap with its kernels compiled, for all processors of this architecture: no compiler is needed later.
set -euo pipefail
"$PYTHON" -m pip install . --no-deps --no-build-isolation --no-cache-dir -vv
"$PYTHON" -m readmap compile --no-gpu --quiet --into "$SP_DIR/readmap/compiled"
