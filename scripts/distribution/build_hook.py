"""A build hook for hatchling that adds a bill of materials, compiled kernels, manual pages and completions to a wheel.

The bill of materials (CycloneDX in JSON, at the path of PEP 770) is generated from pyproject.toml. It names readmap and
each required or optional package with its version specifiers. A wheel contains only readmap's own code.

scripts/wheels sets environment variables: READMAP_COMPILED is a folder of compiled kernels, READMAP_SHARE a folder of
manual pages and completions, and READMAP_PLATFORM the platform tag of the wheel.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.utils import canonicalize_name


def bill_of_materials(metadata: Any) -> dict[str, Any]:
    """Return the bill of materials: one component per package, optional if only extras require the package.

    metadata: hatchling's metadata of the project.
    """
    core = metadata.core
    own = f"pkg:pypi/{core.name}@{metadata.version}"
    components: dict[str, dict[str, Any]] = {}
    groups = {"": core.dependencies_complex, **core.optional_dependencies_complex}
    for extra, requirements in groups.items():
        for requirement in requirements.values():
            name = canonicalize_name(requirement.name)
            identity = {"type": "library", "bom-ref": f"pkg:pypi/{name}", "name": name, "purl": f"pkg:pypi/{name}"}
            component = components.setdefault(
                name, {**identity, "scope": "optional" if extra else "required", "properties": []}
            )
            key = f"readmap:requirement{f':{extra}' if extra else ''}"
            component["properties"].append({"name": key, "value": str(requirement)})
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
    """The hook; its temporary folder exists until the wheel is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="readmap-")
        path = Path(self._folder.name) / f"{self.metadata.core.name}.cdx.json"
        path.write_text(json.dumps(bill_of_materials(self.metadata), indent=1) + "\n")
        build_data["sbom_files"].append(str(path))
        if compiled := os.environ.get("READMAP_COMPILED"):
            build_data["force_include"][compiled] = "readmap/compiled"
            build_data["tag"] = f"py3-none-{os.environ['READMAP_PLATFORM']}"
            build_data["pure_python"] = False
        if share := os.environ.get("READMAP_SHARE"):
            build_data["shared_data"][share] = "share"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()
