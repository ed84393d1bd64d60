"""The other processes of the cluster: their hosts and addresses. Pure."""
