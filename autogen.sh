#!/bin/sh
# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# Makes ./configure. Needs autoconf, automake and libtool.
set -e
cd "$(dirname "$0")"
mkdir -p m4
exec autoreconf --install --force "$@"
