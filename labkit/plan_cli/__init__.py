"""`labkit plan`: the planner on a command line, as tables or as JSON. No torch."""
