//! fio's words that this model does not act on: those without an effect here, and those that it cannot honour.
//!
//! With [`super::words`] they are all words of fio 3.33 (`fio --cmdhelp=all`, `fio --enghelp`), those of fio's source of August
//! 2026, and those that fio no longer has. A test compares them with the installed fio.

/// Words that change nothing in the model, with why.
pub(super) const IGNORED: &[(&str, &str)] = &[
    (
        "filename directory filename_format unique_filename opendir nrfiles nr_files openfiles file_service_type filetype \
         create_on_open create_serialize allow_file_create fallocate unlink unlink_each_loop overwrite invalidate lockfile \
         allow_mounted_write fadvise_hint pre_read",
        "the simulated volume takes the place of files",
    ),
    (
        "group_reporting new_group per_job_logs write_bw_log write_lat_log write_iops_log write_iolog log_avg_msec \
         log_hist_msec log_hist_coarseness log_entries log_offset log_prio log_issue_time log_compression \
         log_compression_cpus log_store_compressed log_window_value log_alternate_epoch log_alternate_epoch_clock_id \
         job_start_clock_id write_hist_log bwavgtime iopsavgtime percentile_list clat_percentiles lat_percentiles \
         slat_percentiles block_error_percentiles disable_lat disable_clat disable_slat disable_bw_measurement disable_bw \
         gtod_reduce gtod_cpu clocksource unified_rw_reporting eta eta-newline eta-interval output output-format \
         append-terse minimal terse-version bandwidth-log status-interval significant_figures disk_util stats \
         log_max_value log_unix_epoch error_dump debug",
        "the report has a form of its own",
    ),
    (
        "thread nice prio prioclass priohint comm cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy \
         mem iomem iomem_align mem_align lockmem hipri registerfiles fixedbufs sqthread_poll nowait userspace_reap \
         ioscheduler cgroup cgroup_weight cgroup_nodelete uid gid hugepage-size io_submit_mode exec_prerun exec_postrun \
         gpu_dev_id write_hint atomic readonly parse-only showcmd alloc-size max-jobs warnings-fatal idle-prof aux-path \
         trigger-file trigger-timeout trigger trigger-remote client server daemonize remote-config",
        "there is no host in virtual time",
    ),
    (
        "zero_buffers refill_buffers scramble_buffers buffer_pattern buffer_compress_percentage buffer_compress_chunk \
         dedupe_percentage dedupe_global dedupe_mode dedupe_working_set_percentage",
        "the data do not matter to the limits of a volume",
    ),
    (
        "do_verify verify_policy verifysort verifysort_nr verify_interval verify_offset verify_pattern \
         verify_pattern_interval verify_fatal verify_dump verify_async verify_async_cpus verify_backlog_batch \
         verify_state_save verify_state_load verify_write_sequence verify_header_seed experimental_verify \
         trim_verify_zero trim_backlog trim_backlog_batch num_range",
        "nothing is verified or trimmed",
    ),
    (
        "iodepth_batch iodepth_batch_submit iodepth_batch_complete iodepth_batch_complete_min \
         iodepth_batch_complete_max iodepth_low serialize_overlap thinktime_spin",
        "the depth is refilled I/O by I/O",
    ),
    ("norandommap softrandommap random_generator", "random blocks are drawn with replacement"),
    ("randrepeat allrandrepeat randseed", "give --seed instead"),
    (
        "sync write_barrier end_fsync end_syncfs fsync_on_close create_fsync sync_file_range",
        "an answered write of a volume is durable, and flushes at the end are outside of the run",
    ),
    ("ramp_time ramp_size", "nothing is left out; read the intervals after it"),
    ("exitall exit_what", "each job goes on to an end of its own"),
    ("exitall_on_error continue_on_error ignore_error max_latency", "no I/O fails here"),
    (
        "rate_min ratemin rate_iops_min rate_cycle ratecycle",
        "no job is ended because it is too slow, and a pace is even at each instant",
    ),
    ("unit_base", "the report has units of its own"),
    ("rwmixcycle flow_watermark", "it has none in fio either"),
    (
        "steadystate_ramp_time ss_ramp steadystate_check_interval ss_interval latency_window latency_percentile \
         replay_scale replay_align replay_time_scale replay_skip replay_redirect read_iolog_chunked \
         merge_blktrace_scalars merge_blktrace_iters flow_sleep flow_id rw_sequencer",
        "the word that it belongs to is not used",
    ),
    (
        "max_open_zones job_max_open_zones ignore_zone_limits zonecapacity read_beyond_wp zone_reset_threshold \
         zone_reset_frequency recover_zbd_write_error write_zone_remainder fdp dataplacement data_placement plid_select \
         fdp_pli_select plids fdp_pli dp_scheme",
        "a volume has neither zones nor places for data",
    ),
    (
        "apptag apptag_mask arguments bindname brick busy_poll cdb_len chunk_size clientname clustername cmd_type cmdprio \
         cmdprio_bssplit cmdprio_class cmdprio_percentage cmdprio_hint conf cpuchunks cpuload cpumode deac donorname \
         exit_on_io_done force_async gpu_dev_ids grace_time hdfs_use_direct hdfsdirectory hipri_percentage hostname \
         http_host http_mode http_object_mode http_pass http_s3_key http_s3_keyid http_s3_region \
         http_s3_security_token http_s3_sse_customer_algorithm http_s3_sse_customer_key http_s3_storage_class \
         http_swift_auth_token http_user http_verbose https initiator inplace interface libaio_vectored \
         libblkio_driver libblkio_force_enable_completion_eventfd libblkio_num_entries libblkio_path \
         libblkio_pre_connect_props libblkio_pre_start_props libblkio_queue_size libblkio_vectored libblkio_wait_mode \
         libblkio_write_zeroes_on_trim listen md_per_io_size mss namenode nfs_url no_completion_thread nodelay nonvectored \
         object_class page_fault pi_act pi_chk pingpong pool port program proto protocol rbd_encryption_format \
         rbd_encryption_passphrase rbdname read_mode readfua sg_write_mode single-instance single_instance \
         skip_bad sqthread_poll_cpu stat_type std_redirect stream_id svcl thp touch_objects ttl uncached uri verb \
         verify_bytchk verify_mode volume window_size write_mode writefua xnvme_admin xnvme_async xnvme_be \
         xnvme_dev_nsid xnvme_dev_subnqn xnvme_iovec xnvme_mem xnvme_sync",
        "the simulated volume takes the place of the I/O engine",
    ),
];

/// Words of fio's that change the load in ways that are not modelled: the words, the values with which they change nothing, and
/// what to do instead.
pub(super) const REFUSED: &[(&str, &[&str], &str)] = &[
    (
        "bsrange blocksize_range bs_unaligned blocksize_unaligned",
        &["0"],
        "list sizes with bssplit, like bssplit=4k/50:16k/50",
    ),
    ("blockalign ba", &["0"], "leave it out: I/O begins at multiples of its smallest size"),
    ("bs_is_seq_rand", &["0"], "give bs the size of the job's own rw"),
    (
        "verify verify_backlog verify_only trim_percentage",
        &["0"],
        "leave it out; it adds I/O that is not modelled",
    ),
    (
        "read_iolog replay_no_stall merge_blktrace_file merge-blktrace-only",
        &["0"],
        "give the log to --trace, or describe the load with rw, bs and rate_iops",
    ),
    ("zonemode zonesize zonerange zoneskip", &["none", "0"], "use offset and size"),
    (
        "percentage_random",
        &["100", "100,100", "100,100,100"],
        "run a sequential and a random job at the same time from a job file",
    ),
    ("percentage_sequential", &["0"], "run a sequential and a random job at the same time from a job file"),
    ("latency_target latency_run", &["0"], "run several depths and compare"),
    ("rate_ignore_thinktime", &["0"], "give rate or rate_iops alone"),
    (
        "thinktime_blocks_type thinktime_iotime thinkcycles",
        &["complete", "0"],
        "give thinktime and thinktime_blocks",
    ),
    ("flow", &["0"], "use startdelay or stonewall"),
    ("wait_for", &[], "use startdelay or stonewall"),
    ("steadystate ss steadystate_duration ss_dur", &["0"], "give a runtime"),
    ("filesize file_append fill_device fill_fs", &["0"], "use size, or leave it out for the whole volume"),
    ("create_only", &["0"], "it makes files and does no I/O; leave the job out"),
    ("offset_align", &["0"], "give offset in bytes"),
    (
        "random_sequence_stride sprandom spr_num_regions spr_op spr_cs",
        &["0"],
        "leave it out; the order of random blocks is the model's own",
    ),
    (
        "profile inflate-log crctest memcpytest cpuclock-test version help cmdhelp enghelp latency-log",
        &[],
        "it runs no job; leave it out",
    ),
];

/// I/O engines that send no I/O to a volume.
pub(super) const ENGINES_WITHOUT_VOLUME: &[&str] = &[
    "cpuio",
    "null",
    "net",
    "netsplice",
    "rdma",
    "exec",
    "ftruncate",
    "falloc",
    "e4defrag",
    "filecreate",
    "filestat",
    "filedelete",
    "dircreate",
    "dirstat",
    "dirdelete",
    "http",
    "mtd",
];

/// fio's flags: words that a job file has without a value, or with 0 or 1 (`fio --cmdhelp=WORD`: "empty or boolean value").
pub(super) const JOB_FLAGS: &str = "time_based norandommap bs_unaligned blocksize_unaligned verify_only exitall \
     exitall_on_error stonewall wait_for_previous new_group thread group_reporting zero_buffers refill_buffers hipri \
     fixedbufs registerfiles sqthread_poll nonvectored userspace_reap nodelay";

/// Options of the command line that take no value without an equals sign.
pub(super) const COMMAND_FLAGS: &str = "minimal append-terse version help cmdhelp enghelp showcmd readonly parse-only \
     warnings-fatal server cpuclock-test crctest memcpytest merge-blktrace-only bandwidth-log single-instance";

/// Whether a list of words between blanks has a word.
pub(super) fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}
