"""Made-up runs in the place of guests, as studies have them."""

from tests.study.conftest import lab

__all__ = ["lab"]
