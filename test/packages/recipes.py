# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# Reads the recipes of Spack ($SPACK) and EasyBuild ($EB) with modules in place of
# those that they import. Prints options of configure and files of an installation.
# $VERSION is the version of both, $SOURCE a source tree of UCX. Reads $ACTION, an
# action of GitHub, if Python has the module yaml.
import os
import sys
import types

try:
    import yaml
except ImportError:
    yaml = None

directives = []


class Autotools:
    def enable_or_disable(self, name):
        return ["--enable-" + name]


def directive(name):
    return lambda *words, **options: directives.append((name, words, options))


def fail(text):
    sys.exit("FAILED: " + text)


spack = types.ModuleType("spack.package")
spack.AutotoolsPackage = Autotools
spack.InstallError = type("InstallError", (Exception,), {})
for directive_name in "license version variant conflicts depends_on".split():
    setattr(spack, directive_name, directive(directive_name))
sys.modules["spack"] = types.ModuleType("spack")
sys.modules["spack.package"] = spack


def run(path):
    names = {"__file__": path}
    with open(path) as file:
        exec(compile(file.read(), path, "exec"), names)
    return names


class Folder(str):
    def __getattr__(self, name):
        return Folder(os.path.join(self, name))


recipe = run(os.environ["SPACK"])
package = recipe["Dcx"]()
package.spec = {"ucx": types.SimpleNamespace(prefix=Folder("/no/such"))}
os.environ.pop("DCX_UCX_SOURCE", None)
try:
    package.configure_args()
    fail("Spack builds without a source tree of UCX")
except spack.InstallError as error:
    print("refused:", error)
os.environ["DCX_UCX_SOURCE"] = os.environ["SOURCE"]
os.makedirs(os.path.join(os.environ["SOURCE"], "src/uct"), exist_ok=True)
for option in package.configure_args():
    print("option", option)
if not os.path.exists(os.path.join(recipe["CLONE"], "configure.ac")):
    fail("no clone in " + recipe["CLONE"])
if os.environ["VERSION"] not in [w[0] for n, w, _ in directives if n == "version"]:
    fail("package.py has another version")

if yaml:
    with open(os.environ["ACTION"]) as file:
        action = yaml.safe_load(file)
    if action["runs"]["using"] != "composite" or "inputs" not in action:
        fail("action.yml is no composite action")
    for step in action["runs"]["steps"]:
        if step["shell"] != "bash":
            fail("a step without a shell")

easyconfig = run(os.environ["EB"])
if easyconfig["version"] != os.environ["VERSION"]:
    fail("dcx.eb has another version")
for option in easyconfig["configopts"].split():
    print("option", option)
print("easybuild", easyconfig["configopts"])
for paths in easyconfig["sanity_check_paths"].values():
    for path in paths:
        print("file", path)
