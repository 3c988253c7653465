"""The places of the judged items: matched in ready lists, or counted among the candidates of a source."""
