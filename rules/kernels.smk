# Stage 1: the guest kernel, built once for each (source version, options, patches, compiler).


rule kernel:
    input:
        "config/kernels.yaml",
        [str(p) for p in ingredients(KERNEL or None)],
    output:
        "results/kernel.json",
    log:
        "results/logs/kernel.log",
    threads: workflow.cores
    params:
        kernel=KERNEL,
    shell:
        "bbrlab kernel build {params.kernel} --jobs {threads} --record {output} > {log} 2>&1"
