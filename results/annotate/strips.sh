#!/usr/bin/env bash
# Draws the film strips of this page: results/annotate/strips.sh LIBERO_FOLDER SYNTHETIC_FOLDER
set -euo pipefail
here=$(dirname "$(readlink -f "$0")") python=${PYTHON:-python3}
draw() { "$python" "$here/strips.py" "$here/$1.json" "$2" "${@:3}" --out "$here/strips-$(basename "$2").png"; }
draw libero "$1/libero_object" 41 45
draw libero "$1/libero_spatial" 49 54
draw libero "$1/libero_goal" 38 40
draw libero "$1/libero_10" 30 35
draw synthetic "$2/so101" 17 19
draw synthetic "$2/aloha" 13 15
draw synthetic "$2/humanoid" 17 18
draw synthetic "$2/mobile" 13 15
draw synthetic "$2/state-only" 16 17
