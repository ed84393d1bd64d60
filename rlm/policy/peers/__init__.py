"""Evaluates the other processes of the cluster: their hosts and addresses. Pure."""
