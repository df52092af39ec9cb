#!/bin/sh
# Converts all archives of a folder as a Slurm array, each task every N-th of them:
#   sbatch --array=0-15 examples/slurm_convert.sh ARCHIVES OUT
# A model that is there is complete, and is skipped: the same command resumes after a failure.
#SBATCH --job-name=pt2onnx
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=02:00:00
set -u
archives=$1 out=$2
index=${SLURM_ARRAY_TASK_ID:-0} count=${SLURM_ARRAY_TASK_COUNT:-1}
mkdir -p "$out/failures"
find "$archives" -name '*.pt2' | sort | awk -v i="$index" -v n="$count" 'NR % n == i' | (
    failed=0
    while IFS= read -r archive; do
        name=${archive#"$archives"/}
        name=${name%.pt2}
        mkdir -p "$(dirname "$out/$name")" "$(dirname "$out/failures/$name")"
        [ -e "$out/$name.onnx" ] && continue
        pt2onnx --quiet "$archive" -o "$out/$name.onnx" 2> "$out/failures/$name.txt" && rm "$out/failures/$name.txt" || failed=4
    done
    exit $failed
)
