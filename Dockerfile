# bbrlab in a container: docker build -t bbrlab:0.1.0 . && docker run --rm -it -v "$PWD/results:/bbrlab/results" bbrlab:0.1.0
# Needs no privilege and no network at run time. /dev/shm is mounted noexec in containers, hence TMPDIR.
FROM debian:12-slim
ENV DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 TMPDIR=/var/tmp
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates make procps && rm -rf /var/lib/apt/lists/*
WORKDIR /bbrlab
COPY . .
RUN make setup && rm -rf /var/lib/apt/lists/* /usr/src/linux-source-*.tar.xz.old
RUN useradd --create-home researcher && chown -R researcher /bbrlab
USER researcher
ENV PATH=/bbrlab/.venv/bin:$PATH
CMD ["snakemake", "--cores", "all", "all"]
