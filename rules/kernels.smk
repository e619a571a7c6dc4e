# Stage 1: the guest kernel, built once for each (source version, options, patches, compiler).


rule kernel:
    input:
        name_of(paths.CONFIG / "kernels.yaml"),
        [name_of(path) for path in ingredients(KERNEL or None)],
        code=CODE["kernel"],
    output:
        f"{RESULTS}/kernel.json",
    log:
        f"{LOGS}/kernel.log",
    # One that is there is only recorded.
    localrule: kernel_is_built(KERNEL or None)
    threads: workflow.cores
    params:
        kernel=KERNEL,
        # An upgrade of the source package or the compiler makes another kernel, too.
        identity=kernel_identity(KERNEL or None),
    shell:
        "bbrlab kernel build {params.kernel} --jobs {threads} --record {output} > {log} 2>&1"
