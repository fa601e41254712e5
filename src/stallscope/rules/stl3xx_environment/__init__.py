"""Rendezvous and environment: NCCL and Gloo variables, shared memory, ports, names."""
