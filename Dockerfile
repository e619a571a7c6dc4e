# bbrlab in a container, with no privilege and no network at run time. `make container` builds it, with labels; or:
#   docker build -t bbrlab:0.1.0 .
#   mkdir -p results && docker run --rm -it --user "$(id -u):$(id -g)" -v "$PWD/results:/bbrlab/results" bbrlab:0.1.0
# What follows the image's name: nothing: the campaign; test; run SCENARIO.yaml; lab; any other command (docs/howto/container.md).
ARG BASE_IMAGE=docker.io/library/debian:12-slim

# What guests and Python need of Debian.
FROM ${BASE_IMAGE} AS guest
ARG ARCHIVE=
# A container mounts /dev/shm noexec, hence TMPDIR.
ENV DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 TMPDIR=/var/tmp
WORKDIR /bbrlab
COPY envs/image.sh envs/debian-packages.txt envs/
RUN --mount=type=secret,id=certificates envs/image.sh guest

FROM guest AS python
COPY envs/requirements.lock envs/lint-requirements.txt envs/
RUN --mount=type=secret,id=certificates envs/image.sh python

# The kernels and the guest's helpers, with what compiles them. Only what decides them is copied, so that a change of anything else
# builds no kernel.
FROM python AS kernels
ARG ARCHIVE=
RUN --mount=type=secret,id=certificates envs/image.sh kernel-packages && envs/image.sh strip
COPY config/kernels.yaml config/
COPY kernels kernels
COPY mininet/iperf3_patience.c mininet/ovs_clock.c mininet/
COPY bbrlab/__init__.py bbrlab/
COPY bbrlab/base bbrlab/base
COPY bbrlab/kernel bbrlab/kernel
COPY bbrlab/experiment/__init__.py bbrlab/experiment/iperf3_library.py bbrlab/experiment/
COPY bbrlab/cli/__init__.py bbrlab/cli/app.py bbrlab/cli/interrupts.py bbrlab/cli/kernels.py bbrlab/cli/
RUN envs/image.sh kernels

# What is taken from there.
FROM kernels AS built
COPY bbrlab_apps/__init__.py bbrlab_apps/
COPY bbrlab_apps/container/__init__.py bbrlab_apps/container/facts.py bbrlab_apps/container/
RUN PYTHONPATH=/bbrlab .venv/bin/python -m bbrlab_apps.container.facts --recorded && rm -rf build/trees build/sources build/kernels/*.log

FROM guest
COPY --from=built /bbrlab/.venv .venv
COPY . .
COPY --from=built /bbrlab/build build
ARG COMMIT=
ARG MODIFIED=
ARG NB_USER=researcher
ARG NB_UID=1000
RUN echo "$NB_USER:x:$NB_UID:$NB_UID::/var/tmp:/bin/bash" >>/etc/passwd && echo "$NB_USER:x:$NB_UID:" >>/etc/group && envs/image.sh finish
ENV HOME=/var/tmp USER=${NB_USER} PATH=/bbrlab/.venv/bin:$PATH
EXPOSE 8888
USER ${NB_UID}
ENTRYPOINT ["/bbrlab/envs/entrypoint.sh"]
