
# One part of the job. Defined above: request_directory, first_events, part_events, pipeline.
index=$SLURM_ARRAY_TASK_ID
task=${SLURM_ARRAY_JOB_ID}_$index
first_event=${first_events[$index]}
events=${part_events[$index]}
whole=$request_directory/$index
# A different one for each run: a run on a node that Slurm has lost may continue.
run=$task.${SLURM_RESTART_COUNT:-0}
output=$request_directory/.$index.$run
status=$request_directory/status/$task
began=$(date +%s)

# Always record the end of the task, as the batch system soon forgets it.
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

# Private, as other users of the machine see the file system.
umask 077
mkdir -p -- "$request_directory/status" "$request_directory/log" "$request_directory/progress"
export COLLIDIUM_PROGRESS_FILE=$request_directory/progress/$index.json
exec >>"$request_directory/log/$task" 2>&1
rm -f -- "$status"
trap record_end EXIT
trap 'exit 143' TERM

# Simulate the part and write the sha256 of each table. Statements are joined by &&, as bash ignores errexit here.
simulate() {
    rm -rf -- "$output" &&
        mkdir -- "$output" &&
        pipeline &&
        (cd -- "$output" && find . -maxdepth 1 -type f -name '*.parquet' -exec sha256sum -- {} + >SHA256SUMS)
}

# A requeued task may have finished before.
if [[ ! -d $whole ]]; then
    # The cause may be temporary. After three failures the job has failed, so waiting parts are cancelled.
    simulate || simulate || simulate || {
        code=$?
        scancel --state=PENDING "$SLURM_ARRAY_JOB_ID" || true
        exit "$code"
    }
    # An incomplete output never has the final name.
    mv -T -- "$output" "$whole" || [[ -d $whole ]]
fi
