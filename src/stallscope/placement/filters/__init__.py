"""kube-scheduler's filter plugins, one module each (or a family), in the order of its default profile."""
