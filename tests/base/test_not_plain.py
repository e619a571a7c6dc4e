"""Files that are no plain ones, and notes in tables that say anything."""

import os

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bbrlab.base.errors import UserError
from bbrlab.base.files import read_json, read_plain
from bbrlab.base.tables import read_table
from bbrlab.base.yaml_files import read_yaml
from bbrlab.kernel.patch_files import parts_of


@pytest.mark.parametrize("read", [read_plain, read_yaml, read_table, read_json, parts_of])
def test_a_pipe_or_a_device_is_not_read(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name, words in (
        ("pipe", r"is a pipe, not a file; write what comes out of it to a file"),
        ("zero", "is not a file"),
    ):
        with pytest.raises(UserError, match=words):
            read(tmp_path / name)


@pytest.mark.parametrize("note", [b"[1]", b'{"index_columns": ["flow"], "columns": [], "column_indexes": []}'])
def test_a_note_for_pandas_may_say_anything(tmp_path, note):
    table = pa.table({"flow": [0, 1]}).replace_schema_metadata({b"pandas": note})
    pq.write_table(table, tmp_path / "x.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "x.parquet"), pd.DataFrame({"flow": [0, 1]}))
