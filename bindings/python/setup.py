"""Builds libdivision_codec with CMake and puts it into the package. Everything else is in pyproject.toml.

The C sources are those of the tree that this folder is in: pip builds from a checkout (pip install bindings/python).
"""
import pathlib
import re
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

TREE = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = "libdivision_codec.so"


def version():
    header = (TREE / "include/division/version.h").read_text()
    return ".".join(re.search(rf"#define DV_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        if getattr(self, "editable_mode", False):
            return  # the library of the build tree is found from here
        build = pathlib.Path(self.get_finalized_command("build").build_temp).resolve() / "codec"
        build.mkdir(parents=True, exist_ok=True)
        configure = ["cmake", "-S", str(TREE), "-B", str(build), "-DDV_CODEC_ONLY=ON", "-DCMAKE_BUILD_TYPE=Release"]
        subprocess.run(configure, check=True)
        subprocess.run(["cmake", "--build", str(build), "--parallel", "2"], check=True)
        shutil.copy(build / LIBRARY, pathlib.Path(self.build_lib) / "division" / LIBRARY)


class BinaryDistribution(Distribution):
    """A wheel for one platform: it holds a library."""

    def has_ext_modules(self):
        return True


setup(version=version(), cmdclass={"build_py": BuildWithLibrary}, distclass=BinaryDistribution)
