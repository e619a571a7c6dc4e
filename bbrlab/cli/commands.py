"""Every command: each module adds its own to the frame."""

# ruff: noqa: F401
from __future__ import annotations

import bbrlab.cli.stages.claims
import bbrlab.cli.stages.models
import bbrlab.cli.stages.pages
import bbrlab.cli.stages.runs
import bbrlab.cli.stages.tables
import bbrlab_apps.archive.commands
import bbrlab_apps.crosscheck.commands
import bbrlab_apps.grading.commands
import bbrlab_apps.ns3.commands
import bbrlab_apps.play.commands
import bbrlab_apps.qlog.commands
import bbrlab_apps.shipping.commands
import bbrlab_apps.site.commands
import bbrlab_apps.study.commands
import bbrlab_apps.testbed.commands
import bbrlab_apps.traffic.commands
from bbrlab.cli import cache, checks, kernels, models, run, verify
from bbrlab.cli.app import app, cache_app, kernel_app, model_app
from bbrlab_apps.container.commands import container_app
from bbrlab_apps.grading.commands import assignment_app, course_app

app.add_typer(assignment_app, name="assignment")
app.add_typer(cache_app, name="cache")
app.add_typer(container_app, name="container")
app.add_typer(course_app, name="course")
app.add_typer(kernel_app, name="kernel")
app.add_typer(model_app, name="model")

__all__ = ["app"]
