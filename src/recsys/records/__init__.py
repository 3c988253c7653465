"""What all rooms pass around: frozen arrays, facts, declared keywords, checks of arguments, the registry."""
