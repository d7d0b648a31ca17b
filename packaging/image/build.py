#!/usr/bin/env python3
"""Makes an OCI image of a program that is built: packaging/image/build.py PROGRAM FOLDER. Needs Python and nothing else, no daemon and
no root.

Writes FOLDER/entente-image.tar and prints its path and the image's digest. The file is an OCI image layout, with the list that
`docker load` of every version reads. The same program gives the same digest, whenever and by whomever it is made.
"""

import argparse
import hashlib
import io
import json
import pathlib
import platform
import struct
import subprocess
import sys
import tarfile

USER = 10001
NODE = "/var/lib/entente/node"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
INTERPRETER = 3


def has_interpreter(program):
    """Whether an ELF program asks for a loader, which the image does not have. Table of segments: System V ABI, chapter 5."""
    if program[:4] != b"\x7fELF" or program[4] != 2:
        sys.exit("build.py: expected a program for a 64-bit Linux")
    (table,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    kinds = (struct.unpack_from("<I", program, table + at * size)[0] for at in range(count))
    return INTERPRETER in kinds


def layer(program):
    """The only layer: the program, who runs it, where it writes. Every file has the time 0."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:

        def add(name, mode, content=None, owner=0):
            entry = tarfile.TarInfo(name)
            entry.mode, entry.uid, entry.gid = mode, owner, owner
            if content is None:
                entry.type = tarfile.DIRTYPE
                tar.addfile(entry)
            else:
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))

        add("etc", 0o755)
        add("etc/group", 0o644, f"root:x:0:\nentente:x:{USER}:\n".encode())
        add("etc/passwd", 0o644, f"root:x:0:0::/:/nologin\nentente:x:{USER}:{USER}::/var/lib/entente:/nologin\n".encode())
        add("tmp", 0o1777)
        add("usr", 0o755)
        add("usr/bin", 0o755)
        add("usr/bin/entente", 0o755, program)
        add("var", 0o755)
        add("var/lib", 0o755)
        add("var/lib/entente", 0o750, owner=USER)
        add("var/lib/entente/node", 0o750, owner=USER)
    return buffer.getvalue()


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def descriptor(kind, content, **more):
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": len(content), **more}


def image(program, version, architecture):
    """The image's files by name, and its digest."""
    files = layer(program)
    # Not compressed: what a compressor writes depends on its version. Whoever pushes the image compresses it.
    files_of = descriptor("layer.v1.tar", files)
    config = canonical(
        {
            "architecture": architecture,
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": {
                "User": f"{USER}:{USER}",
                "Entrypoint": ["/usr/bin/entente"],
                "Cmd": ["node", "--dir", NODE, "--log", "json"],
                "Env": ["PATH=/usr/bin"],
                "WorkingDir": "/var/lib/entente",
                "Volumes": {NODE: {}},
                "ExposedPorts": {"7000/tcp": {}, "7100/tcp": {}, "7200/tcp": {}},
                "StopSignal": "SIGTERM",
                "Labels": {
                    "org.opencontainers.image.title": "entente",
                    "org.opencontainers.image.version": version,
                    "org.opencontainers.image.licenses": "Apache-2.0",
                },
            },
            "rootfs": {"type": "layers", "diff_ids": [files_of["digest"]]},
            "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "packaging/image/build.py"}],
        }
    )
    config_of = descriptor("config.v1+json", config)
    manifest = canonical(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config_of,
            "layers": [files_of],
        }
    )
    platform_of = {"architecture": architecture, "os": "linux"}
    names = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": f"docker.io/library/entente:{version}"}
    manifest_of = descriptor("manifest.v1+json", manifest, platform=platform_of, annotations=names)
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest_of]}

    def blob(described):
        return "blobs/sha256/" + described["digest"].removeprefix("sha256:")

    legacy = [{"Config": blob(config_of), "RepoTags": [f"entente:{version}"], "Layers": [blob(files_of)]}]
    contents = {
        "oci-layout": canonical({"imageLayoutVersion": "1.0.0"}),
        "index.json": canonical(index),
        "manifest.json": canonical(legacy),
        blob(manifest_of): manifest,
        blob(config_of): config,
        blob(files_of): files,
    }
    return contents, manifest_of["digest"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--dynamic", action="store_true", help="take a program that needs a loader, which will not run in the image")
    arguments = parser.parse_args()
    program = arguments.program.read_bytes()
    if has_interpreter(program) and not arguments.dynamic:
        sys.exit(f"build.py: {arguments.program} needs a loader and libraries beside it, and an image has none: build it with `make dist`")
    said = subprocess.run([arguments.program, "--version"], check=True, capture_output=True, text=True).stdout
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        sys.exit(f"build.py: expected a machine of {', '.join(ARCHITECTURES)}, found {machine}")
    contents, digest = image(program, said.split()[1], ARCHITECTURES[machine])
    arguments.folder.mkdir(parents=True, exist_ok=True)
    path = arguments.folder / "entente-image.tar"
    with tarfile.open(path, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = 0o644, len(content)
            tar.addfile(entry, io.BytesIO(content))
    print(path)
    print(digest)


if __name__ == "__main__":
    main()
