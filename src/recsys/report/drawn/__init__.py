"""How figures are drawn; `recsys.report.figures` is their face."""
