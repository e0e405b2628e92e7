"""The teaching layer on labkit: lesson content, widgets, labels, grading."""
