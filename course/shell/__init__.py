"""The shell around every lesson: gist, guide, map, trade-offs, pitfalls, questions, quiz."""

from course.shell.page import Page

__all__ = ["Page"]
