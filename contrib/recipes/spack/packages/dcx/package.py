# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# Spack: spack repo add contrib/recipes/spack, then
#   spack install --source ucx@1.18.1 && spack install dcx ^ucx@1.18.1
# It builds the clone that it lies in. UCX has to keep its source tree (--source), as
# a transport is built from headers that UCX does not install. DCX_UCX_SOURCE names
# the tree of a UCX that Spack did not build.
import os

from spack.package import *

try:  # moved out of spack.package in Spack 1.0
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
except ImportError:
    pass

CLONE = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 5))


class Dcx(AutotoolsPackage):
    """UCX transport over Dynamically Connected queues of ConnectX adapters."""

    homepage = "file://" + CLONE
    git = "file://" + CLONE

    license("BSD-3-Clause")

    version("0.2.0", tag="v0.2.0")

    variant("softhca", default=True, description="the software device")
    variant("views", default=True, description="derived types without packing")
    conflicts("+softhca", when="target=aarch64:")

    depends_on("c", type="build")
    depends_on("autoconf@2.69:", type="build")
    depends_on("automake@1.16:", type="build")
    depends_on("libtool", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("ucx@1.13:1.22 +verbs")
    depends_on("rdma-core")
    depends_on("pmix")

    def configure_args(self):
        ucx = self.spec["ucx"].prefix
        source = os.environ.get("DCX_UCX_SOURCE") or ucx.share.ucx.src
        if not os.path.isdir(os.path.join(source, "src", "uct")):
            raise InstallError("no source tree of UCX: spack install --source ucx")
        args = ["--with-ucx=" + ucx, "--with-ucx-source=" + source]
        return args + self.enable_or_disable("softhca") + self.enable_or_disable("views")
