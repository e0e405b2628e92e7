"""One module per measured claim; each returns a frozen result with its provenance."""
