"""The rehearsal on a real cluster: probe pods with the job's labels and placement, under the cluster's own CNI."""
