"""Read and change the cluster's topics: settings, retention, deletion, canary topics."""
