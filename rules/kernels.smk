# Stage 1: the guest kernel, built once for each (source version, options, patches, compiler); and for figures with
# algorithms of one's own one that has these, too, so that they change nothing for all other figures.


rule kernel:
    input:
        code=CODE["kernel"],
    output:
        f"{RESULTS}/kernel.json",
    log:
        f"{LOGS}/kernel.log",
    # One that is there is only recorded.
    localrule: PLAN.kernel_is_built
    threads: workflow.cores
    params:
        kernel=KERNEL,
    shell:
        "bbrlab kernel build {params.kernel} --cores {threads} --record {output:q} > {log:q} 2>&1"


rule own_kernel:
    input:
        sources=lambda wildcards: [
            local(name_of(paths.KERNELS / "cca" / f"{name}.c"))
            for name in wildcards.own.split("+")
        ],
        code=CODE["kernel"],
    output:
        f"{RESULTS}/kernel+{{own}}.json",
    log:
        f"{LOGS}/kernel+{{own}}.log",
    threads: workflow.cores
    params:
        kernel=KERNEL,
        own=lambda wildcards, input: with_own(input.sources),
    shell:
        "bbrlab kernel build {params.kernel} {params.own} --cores {threads} --record {output:q} > {log:q} 2>&1"
