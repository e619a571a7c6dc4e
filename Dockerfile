# bbrlab in a container, with no privilege and no network at run time:
#   docker build -t bbrlab:0.1.0 .
#   mkdir -p results && docker run --rm -it --user "$(id -u):$(id -g)" -v "$PWD/results:/bbrlab/results" bbrlab:0.1.0
# /dev/shm is mounted noexec in containers, hence TMPDIR.
FROM debian:12-slim
ENV DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 TMPDIR=/var/tmp HOME=/var/tmp USER=researcher PIP_NO_CACHE_DIR=1
WORKDIR /bbrlab
COPY envs/debian-packages.txt envs/
RUN apt-get update && apt-get install -y --no-install-recommends make procps $(grep -v '^#' envs/debian-packages.txt) && \
    rm -rf /var/lib/apt/lists/*
COPY . .
# Whoever runs it may write here: the container's user is the host's, by number.
RUN umask 0 && make setup && chmod a+w /bbrlab
USER nobody
ENV PATH=/bbrlab/.venv/bin:$PATH
CMD ["snakemake", "--cores", "all", "all"]
