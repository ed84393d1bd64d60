"""Topics of the cluster: settings, retention, deletion, canary topics."""
