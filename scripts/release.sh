#!/usr/bin/env bash
# Builds the binary of a release for Linux, with the assembler of the AV1 decoder, and packs it with its checksum.
#
#   scripts/release.sh [DIRECTORY]        default: dist
#
# `nasm` is needed here and not where the program runs; so are a C++ compiler and cargo. The binary needs a glibc at least as
# new as the one here: build on the oldest system that is to be supported. The same commit gives the same archive.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=${1:-dist}
target=$(rustc -vV | sed -n 's/^host: //p')
version=$(cargo metadata --no-deps --format-version 1 --locked | sed 's/.*"name":"cli","version":"\([^"]*\)".*/\1/')

case $target in
    x86_64-*-linux-*)
        command -v nasm >/dev/null || {
            echo 'error: nasm is missing, which assembles the AV1 decoder' >&2
            echo 'hint: `apt-get install nasm`, or `dnf install nasm`' >&2
            exit 2
        }
        ;;
    aarch64-*-linux-*) ;;
    *)
        echo "error: this script packs for Linux, and the host is $target" >&2
        exit 2
        ;;
esac
if [[ -n $(git status --porcelain --untracked-files=no) ]]; then
    echo 'error: there are changes that are not committed, and a release is made from a commit' >&2
    echo 'hint: `git stash`, or commit them' >&2
    exit 2
fi

cargo build --release --locked --package cli --features asm
binary=${CARGO_TARGET_DIR:-target}/release/refactor-vla
[[ $("$binary" --version) == "refactor-vla $version" ]]

name=refactor-vla-$version-$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/$name/completions" "$out"
install -m 755 "$binary" "$work/$name/refactor-vla"
install -m 644 LICENSE README.md CHANGELOG.md "$work/$name/"
for shell in bash zsh fish; do
    "$binary" completions "$shell" >"$work/$name/completions/refactor-vla.$shell"
done
# Times and owners are those of the commit and of nobody, so that the bytes depend on the contents alone.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" \
    -C "$work" -cf - "$name" | gzip -n -9 >"$work/$name.tar.gz"
(cd "$work" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
mv "$work/$name.tar.gz" "$work/$name.tar.gz.sha256" "$out/"
cat "$out/$name.tar.gz.sha256"
