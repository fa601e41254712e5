"""The input itself: what could not be read or judged."""
