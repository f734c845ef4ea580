"""cc_fuzz_test: a libFuzzer harness, as a fuzzer and as a test."""

def cc_fuzz_test(
        name,
        srcs,
        corpus_dir,
        seconds = 10,
        deps = [],
        tags = [],
        **kwargs):
    """Declares NAME, a cc_test tagged "fuzz".

    With --config=fuzz it links libFuzzer and fuzzes for `seconds` from the
    corpus. Otherwise it runs each file of the corpus once.

    Args:
      name: the test target.
      srcs: sources that define LLVMFuzzerTestOneInput.
      corpus_dir: the package's folder of seed files.
      seconds: how long to fuzz.
      deps: libraries under test.
      tags: further tags.
      **kwargs: passed to cc_test.
    """
    corpus = native.glob([corpus_dir + "/**"])
    native.cc_test(
        name = name,
        srcs = srcs,
        # The folder, not its files: given files, libFuzzer only runs them.
        args = select({
            "//:fuzz_mode": [
                "-max_total_time=%d" % seconds,
                "-timeout=10",
                "-print_final_stats=1",
                native.package_name() + "/" + corpus_dir,
            ],
            "//conditions:default": ["$(location %s)" % c for c in corpus],
        }),
        data = corpus,
        linkopts = select({
            "//:fuzz_mode": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        tags = tags + ["fuzz"],
        deps = deps + select({
            "//:fuzz_mode": [],
            "//conditions:default": ["//tools:fuzz_replay_main"],
        }),
        **kwargs
    )
