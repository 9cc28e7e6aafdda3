"""A build hook of hatchling: what a wheel holds beside the sources.

The bill of materials, CycloneDX in JSON, is made of what pyproject.toml says. It names readmap and each package that it
needs or may use, with the versions asked for. A wheel holds no code but readmap's own: there is nothing else to name.
Where it lies in the wheel is PEP 770's.

scripts/wheels says by the environment what else there is: READMAP_COMPILED is a folder of compiled kernels,
READMAP_SHARE one of manual pages and completions, and READMAP_PLATFORM the tag of the platform that all of it is for.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.utils import canonicalize_name


def bill(metadata: Any) -> dict[str, Any]:
    """The bill of hatchling's metadata of a project: a component a package, of which an extra's alone are optional."""
    core = metadata.core
    own = f"pkg:pypi/{core.name}@{metadata.version}"
    components: dict[str, dict[str, Any]] = {}
    wanted = {"": core.dependencies_complex, **core.optional_dependencies_complex}
    for extra, requirements in wanted.items():
        for requirement in requirements.values():
            name = canonicalize_name(requirement.name)
            about = {"type": "library", "bom-ref": f"pkg:pypi/{name}", "name": name, "purl": f"pkg:pypi/{name}"}
            component = components.setdefault(
                name, {**about, "scope": "optional" if extra else "required", "properties": []}
            )
            asked = f"readmap:requirement{f':{extra}' if extra else ''}"
            component["properties"].append({"name": asked, "value": str(requirement)})
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": core.name,
                "version": metadata.version,
                "licenses": [{"expression": core.license_expression}],
                "purl": own,
            }
        },
        "components": list(components.values()),
        "dependencies": [{"ref": own, "dependsOn": [component["bom-ref"] for component in components.values()]}],
    }


class Contents(BuildHookInterface[Any]):
    """Adds them to the wheel; the file that the bill is made in goes when the wheel is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="readmap-")
        path = Path(self._folder.name) / f"{self.metadata.core.name}.cdx.json"
        path.write_text(json.dumps(bill(self.metadata), indent=1) + "\n")
        build_data["sbom_files"].append(str(path))
        if compiled := os.environ.get("READMAP_COMPILED"):
            build_data["force_include"][compiled] = "readmap/compiled"
            build_data["tag"] = f"py3-none-{os.environ['READMAP_PLATFORM']}"
            build_data["pure_python"] = False
        if share := os.environ.get("READMAP_SHARE"):
            build_data["shared_data"][share] = "share"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()
