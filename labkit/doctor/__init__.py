"""`labkit doctor`: what this machine has, what is missing, and how many ranks make sense."""

from labkit.doctor.examination import examine
from labkit.doctor.report import Finding, Report

__all__ = ["Finding", "Report", "examine"]
