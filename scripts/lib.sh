# shellcheck shell=bash disable=SC2034
# Shared by the scripts; not run by itself.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}

say() { printf '==> %s\n' "$*" >&2; }

# die WHAT REMEDY: says what is missing and what to do about it.
die() {
  printf 'error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '       %s\n' "$line" >&2; done
  exit 3
}

have() { command -v "$1" >/dev/null 2>&1; }

is_root() { [ "$(id -u)" = 0 ]; }

# Whether this script may install packages: Debian or Ubuntu, as root.
can_install() { is_root && have apt-get && [ -e /etc/debian_version ]; }

apt_updated=
# install PACKAGE...: Debian packages, without questions. The lists are fetched once, and only when something is missing.
install_packages() {
  export DEBIAN_FRONTEND=noninteractive
  say "installing $* (apt-get)"
  if [ -z "$apt_updated" ]; then
    apt-get -qq -o DPkg::Lock::Timeout=300 update </dev/null >/dev/null || say "apt-get update failed; trying with the lists as they are"
    apt_updated=yes
  fi
  apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" </dev/null >/dev/null
}

# need PROGRAM PACKAGE WHY: a program, installed where that is possible.
need() {
  have "$1" && return
  if can_install && install_packages "$2" && have "$1"; then return; fi
  die "$1 is not installed: $3" "On Debian or Ubuntu: apt-get install $2"
}

engine_answers() { timeout 15 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }
