
# One part of the job. Above stand: request_directory, first_events, part_events, pipeline.
index=$SLURM_ARRAY_TASK_ID
task=${SLURM_ARRAY_JOB_ID}_$index
first_event=${first_events[$index]}
events=${part_events[$index]}
whole=$request_directory/$index
# Its own each time: what runs on a node that Slurm has lost may go on.
run=$task.${SLURM_RESTART_COUNT:-0}
output=$request_directory/.$index.$run
status=$request_directory/status/$task
began=$(date +%s)

# The task always records its end: the batch system soon forgets it.
record_end() {
    local code=$?
    trap - EXIT TERM
    rm -rf -- "$output"
    # Another run of the part may have finished it.
    [[ ! -d $whole ]] || code=0
    printf '{"exit_code": %d, "began": %d, "ended": %d}\n' "$code" "$began" "$(date +%s)" >"$status.$run"
    mv -f -- "$status.$run" "$status"
    exit "$code"
}

# Also a private request writes here, and others of the machine see the file system.
umask 077
mkdir -p -- "$request_directory/status" "$request_directory/log" "$request_directory/progress"
export COLLIDIUM_PROGRESS_FILE=$request_directory/progress/$index.json
exec >>"$request_directory/log/$task" 2>&1
rm -f -- "$status"
trap record_end EXIT
trap 'exit 143' TERM

# From the beginning, with the sha256 of each table; runs after || or &&, where bash ends for no error.
simulate() {
    rm -rf -- "$output" &&
        mkdir -- "$output" &&
        pipeline &&
        (cd -- "$output" && find . -maxdepth 1 -type f -name '*.parquet' -exec sha256sum -- {} + >SHA256SUMS)
}

# A task that was put back into the queue may have finished before.
if [[ ! -d $whole ]]; then
    # What made it fail may have passed. If not, the job has failed, and the parts that wait would be in vain.
    simulate || simulate || simulate || {
        code=$?
        scancel --state=PENDING "$SLURM_ARRAY_JOB_ID" || true
        exit "$code"
    }
    # An incomplete output never has the final name.
    mv -T -- "$output" "$whole" || [[ -d $whole ]]
fi
