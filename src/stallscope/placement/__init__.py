"""kube-scheduler's filters on plain nodes and pods, and what they mean for a whole job."""
