#!/bin/sh
# Says clearly what cannot work, before anything is tried: on Alpine, and wherever else the C library is musl, the Node and the
# PostgreSQL that npm brings along do not start, and the shell would only say "not found". Takes the root folder to look below,
# for the tests.
root=${1:-}
has() { for file in "$@"; do [ -e "$file" ] && return 0; done; return 1; }
if has "$root"/lib/ld-musl-*.so.1 && ! has "$root"/lib64/ld-linux-*.so.* "$root"/lib/ld-linux-*.so.*; then
  echo 'Carillon does not run on Alpine or any other Linux with musl: its PostgreSQL and its Node need glibc.' >&2
  echo 'Use Debian, Ubuntu, Fedora or the like; in a container an image such as node:24-bookworm-slim.' >&2
  exit 1
fi
