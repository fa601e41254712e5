"""STL5xx: what a placement costs."""
