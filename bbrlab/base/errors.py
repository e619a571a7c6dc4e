"""The one exception that a user is meant to see."""


class UserError(Exception):
    """Something that the user can put right. The text says what, where, and what to do; it is shown without traceback."""
