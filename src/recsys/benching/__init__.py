"""From a table of interactions to a decision: `bench`, protocol files and studies."""
