"""Who may talk to whom: policies, mesh, DNS, the admission path."""
