#!/bin/sh
# Makes the virtual environment and installs what the tests and the lab need. Usage: setup.sh VENV
set -eu
venv=$1
python=${PYTHON:-python3}

say() { printf 'setup: %s\n' "$*" >&2; }

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    say "Python 3.11 or newer is needed; '$python' is not that. Try: make PYTHON=/path/to/python3.12"
    exit 2
fi

# Debian packages are only installed where a tool is missing: venv for the environment, ip/tc and nft for the lab.
need=""
"$python" -c 'import venv, ensurepip' 2>/dev/null || need="$need python3-venv"
PATH="$PATH:/usr/sbin:/sbin"
command -v ip >/dev/null && command -v tc >/dev/null || need="$need iproute2"
command -v nft >/dev/null || need="$need nftables"
# Asked for by CI only: the zone map is then looked at by a real browser.
[ "${STALLSCOPE_CHROMIUM:-no}" = no ] || command -v chromium >/dev/null || need="$need chromium"
if [ -n "$need" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "installing Debian packages:$need"
        export DEBIAN_FRONTEND=noninteractive
        # A failed update is not fatal: the lists may already be there.
        apt-get update -qq >/dev/null 2>&1 || true
        # shellcheck disable=SC2086
        apt-get install -y -qq --no-install-recommends $need >/dev/null || say "could not install:$need (lab tests will be skipped)"
    else
        say "these Debian packages are missing:$need"
        say "  by hand: sudo apt-get install$need"
        case "$need" in *python3-venv*) exit 2 ;; esac
        say "  going on without; 'rehearse' and its tests will say so"
    fi
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
say "installing Stallscope and its development tools into $venv (first time: about a minute)"
"$venv/bin/pip" install --quiet --disable-pip-version-check --editable '.[dev]'

# The lab prefers torch's gloo; the plain name may pull several GB of CUDA, so only a version known to be CPU-sized is tried.
if [ "${STALLSCOPE_TORCH:-no}" = yes ] && ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
    say "installing torch for the lab"
    "$venv/bin/pip" install --quiet --disable-pip-version-check 'torch==2.13.0' || say "torch not installed; the lab uses its own ring"
fi
